#include "padded_outputs.hpp"

#include <algorithm>
#include <numeric>

namespace snnjax {
namespace {

// Of a block: 48 KiB, which took less time on a Zen 4 than a half or the double of it. Spikes of a channel are few in
// smaller ones, and larger ones are far beyond its first-level cache of 32 KiB.
constexpr Index kNumbersTogether = 12 << 10;
// At most, and so many bands of channels: places of patches are numbers of 32 bits, and blocks are copied.
constexpr double kMostNumbers = double{1 << 22};

std::size_t at(Index place) { return static_cast<std::size_t>(place); }

// Rows, or pixels in a row, of outputs in which patches begin, from the first one with a weight on.
Index linesOf(Index length, Index input_dilation, Index before, Index stride) {
  return ((length - 1) * input_dilation + before) / stride + 1;
}

}  // namespace

bool PaddedOutputs::takes(const ConvolutionShape& s) {
  const PatchAxis y(s.kernel_height, s.stride_y, s.dilation_y), x(s.kernel_width, s.stride_x, s.dilation_x);
  const bool is_plain = s.groups == 1 && y.phases() * x.phases() == 1 && x.step == 1;
  const auto width = static_cast<double>(linesOf(s.width, s.input_dilation_x, s.left, s.stride_x) + s.kernel_width);
  const auto height = static_cast<double>(linesOf(s.height, s.input_dilation_y, s.top, s.stride_y)) +
                      static_cast<double>(s.kernel_height) * static_cast<double>(y.step);
  return is_plain && 2 * s.channels_out >= kernels().lanes &&
         width * height * static_cast<double>(kernels().lanes) < kMostNumbers &&
         height * static_cast<double>(s.channels) < kMostNumbers;
}

PaddedOutputs::PaddedOutputs(const ConvolutionShape& s)
    : shape_(s),
      layout_(s),
      y_(s.kernel_height, s.stride_y, s.dilation_y),
      x_(s.kernel_width, s.stride_x, s.dilation_x),
      margin_((s.kernel_height - 1) * y_.step),
      row_((linesOf(s.width, s.input_dilation_x, s.left, s.stride_x) + s.kernel_width - 1) * kernels().lanes) {
  const Index lines = linesOf(s.height, s.input_dilation_y, s.top, s.stride_y);
  images_ = std::max<Index>(1, kNumbersTogether / ((lines + margin_) * row_));
  const Index most = images_ > 1 ? lines : std::clamp<Index>(kNumbersTogether / row_ - margin_, 1, lines);
  bands_ = (lines + most - 1) / most;
  lines_ = (lines + bands_ - 1) / bands_;
  setPlaces();
}

void PaddedOutputs::setPlaces() {
  const ConvolutionShape& s = shape_;
  of_pixel_.assign(at(s.height * s.width), {kNoBand, 0});
  for (Index y = 0; y < s.height; ++y) {
    const Index position_y = y * s.input_dilation_y + s.top, line = position_y / s.stride_y;
    for (Index x = 0; x < s.width; ++x) {
      const Index position_x = x * s.input_dilation_x + s.left;
      if (position_y % s.stride_y != 0 || position_x % s.stride_x != 0) continue;
      const Index first = line % lines_ * row_ + position_x / s.stride_x * kernels().lanes;
      of_pixel_[at(y * s.width + x)] = {static_cast<std::uint32_t>(line / lines_), static_cast<std::uint32_t>(first)};
    }
  }
}

template <typename Visit>
void PaddedOutputs::eachVector(Visit visit) const {
  const Index lanes = kernels().lanes, outputs = shape_.channels_out;
  layout_.eachRun([&](Index weight, Index packed) {
    for (Index o = 0; o < outputs; o += lanes) {
      visit(weight + o, o / lanes * ofBlock() + packed / outputs * lanes, std::min(lanes, outputs - o));
    }
  });
}

void PaddedOutputs::unpack(const float* packed, float* sums) const {
  eachVector([&](Index to, Index from, Index count) { std::copy_n(packed + from, count, sums + to); });
}

void PaddedOutputs::read(const Numbers& outputs, Index first, Index images, Index band, Blocks blocks,
                         float* to) const {
  const Index rows = lines_ + margin_, of_row = shape_.outWidth() * shape_.channels_out;
  for (Index row = 0; row < images * rows; ++row) {
    const Index image = row / rows, y = band * lines_ - margin_ + row % rows;
    const bool is_inside = y >= 0 && y < shape_.outHeight();
    for (Index block = 0; block < blocks.count; ++block) {
      float* const own = to + block * size() + row * row_;
      if (is_inside) {
        readRow(outputs, first + image * shape_.numOutputs() + y * of_row, blocks.first + block, own);
      } else {
        std::fill_n(own, row_, 0.0F);
      }
    }
  }
}

void PaddedOutputs::readRow(const Numbers& outputs, Index first, Index block, float* to) const {
  const Index lanes = kernels().lanes, all = shape_.channels_out, before = shape_.kernel_width - 1;
  const Index columns = std::min(lanes, all - block * lanes), from = first + block * lanes;
  const Index pixels = std::min(shape_.outWidth(), row_ / lanes - before);
  float* const own = std::fill_n(to, before * lanes, 0.0F);
  if (!outputs.is_bfloat16) {
    kernels().padRow({outputs.float32() + from, all}, pixels, columns, own);
  } else {
    for (Index i = 0; i < pixels; ++i) {
      outputs.read(from + i * all, columns, own + i * lanes);
      std::fill(own + i * lanes + columns, own + (i + 1) * lanes, 0.0F);
    }
  }
  std::fill(own + pixels * lanes, to + row_, 0.0F);
}

Index SpikesByChannel::list(const PaddedOutputs& outputs, const ListedRows& spikes, Index first, Index count,
                            const std::vector<char>& apart, Listed* listed) {
  const auto channels = static_cast<std::uint32_t>(outputs.channels());
  Index number = 0;
  for (Index r = first; r < first + count; ++r) {
    if (apart[at(r)]) continue;
    const auto image = static_cast<std::uint32_t>((r - first) * outputs.ofImage());
    const SpikeRow row = spikes.row(r);
    for (std::uint32_t k = 0; k < row.count; ++k) {
      const std::uint32_t pixel = row.ids[k] / channels;
      const PaddedOutputs::Place& place = outputs.place(pixel);
      if (place.band == PaddedOutputs::kNoBand) continue;
      const std::uint32_t key = place.band * channels + row.ids[k] - pixel * channels;
      ++starts_[key + 2];
      listed[number++] = {key, image + place.first, row.values == nullptr ? 1.0F : row.values[k]};
    }
  }
  return number;
}

void SpikesByChannel::sort(const PaddedOutputs& outputs, const ListedRows& spikes, Index first, Index count,
                           const std::vector<char>& apart) {
  Index most = 0;
  for (Index r = first; r < first + count; ++r) most += spikes.count(r);
  require32Bits(most);
  channels_ = outputs.channels();
  // Counted in the place behind the next, so that the sums are first the starts and, once all are placed, the ends.
  starts_.assign(at(outputs.bands() * channels_ + 2), 0);
  Borrowed<Listed> listed(most);
  const Index all = list(outputs, spikes, first, count, apart, listed.data());
  std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
  places_ = Borrowed<std::uint32_t>(all);
  if (spikes.hasValues()) values_ = Borrowed<float>(all);
  for (Index i = 0; i < all; ++i) {
    const Index to = starts_[listed[i].key + 1]++;
    places_[to] = listed[i].place;
    if (spikes.hasValues()) values_[to] = listed[i].value;
  }
}

PatchPlaces SpikesByChannel::of(Index band) const {
  return {channels_, starts_.data() + band * channels_, places_.data(), values_.data()};
}

}  // namespace snnjax
