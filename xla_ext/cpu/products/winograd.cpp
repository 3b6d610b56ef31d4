#include "winograd.hpp"

#include <algorithm>

namespace snnjax {
namespace {

// Below it the sums around the products take longer than the products that they save: an estimate from the ratio of
// both, 9 additions and 4 accesses of memory for each number.
constexpr Index kLeastChannels = 32;
// What blocks see and their products stay in the second-level cache.
constexpr Index kNumbersTogether = Index{1} << 17;
// Behind each product a cache line, so that the 16 do not compete for a few sets.
constexpr Index kApart = static_cast<Index>(kCacheLine / sizeof(float));

Index panelOf(Index outputs, Index output) { return std::min(2 * kernels().lanes, outputs - output); }

void atLeast(std::vector<float>& floats, Index count) {
  if (static_cast<Index>(floats.size()) < count) floats.resize(static_cast<std::size_t>(count));
}

}  // namespace

bool WinogradConvolution::takes(const ConvolutionShape& s) {
  const bool is_plain = s.kernel_height == kKernel && s.kernel_width == kKernel && s.stride_y == 1 && s.stride_x == 1 &&
                        s.groups == 1 && !s.isDilated();
  return is_plain && s.channels >= kLeastChannels && s.channels_out >= kLeastChannels &&
         s.channels % kernels().lanes == 0 && s.channels_out % kernels().lanes == 0;
}

WinogradConvolution::WinogradConvolution(const ConvolutionShape& shape, const DenseConvolution::Places& places,
                                         const Numbers& weights)
    : shape_(shape), packed_(kProducts * numbers()) {
  pack(places, weights);
}

void WinogradConvolution::spreadWeights(const float* weights, Index outputs, float* out) {
  // Along one axis: a, (a + b + c) / 2, (a - b + c) / 2, c.
  const auto spread = [outputs](const float* from, Index step, float* to, Index to_step) {
    for (Index o = 0; o < outputs; ++o) {
      const float a = from[o], b = from[step + o], c = from[2 * step + o], ends = 0.5F * (a + c), middle = 0.5F * b;
      to[o] = a;
      to[to_step + o] = ends + middle;
      to[2 * to_step + o] = ends - middle;
      to[3 * to_step + o] = c;
    }
  };
  std::vector<float> rows(static_cast<std::size_t>(kSeen * kKernel * outputs));  // [4][3]
  for (Index x = 0; x < kKernel; ++x) {
    spread(weights + x * outputs, kKernel * outputs, rows.data() + x * outputs, kKernel * outputs);
  }
  for (Index y = 0; y < kSeen; ++y) {
    spread(rows.data() + y * kKernel * outputs, outputs, out + y * kSeen * outputs, outputs);
  }
}

void WinogradConvolution::pack(const DenseConvolution::Places& places, const Numbers& weights) {
  std::vector<float> all(static_cast<std::size_t>(places.count));
  weights.read(0, places.count, all.data());
  const Index outputs = shape_.channels_out, channels = shape_.channels;
  std::vector<float> own(static_cast<std::size_t>(kKernel * kKernel * outputs));
  std::vector<float> spread_of(static_cast<std::size_t>(kProducts * outputs));
  for (Index c = 0; c < channels; ++c) {
    for (Index place = 0; place < kKernel * kKernel; ++place) {
      const float* from = all.data() + places.first + place / kKernel * places.row + place % kKernel * places.pixel +
                          c * places.channel;
      for (Index o = 0; o < outputs; ++o) own[static_cast<std::size_t>(place * outputs + o)] = from[o * places.output];
    }
    spreadWeights(own.data(), outputs, spread_of.data());
    for (Index product = 0; product < kProducts; ++product) {
      for (Index o = 0; o < outputs; o += panelOf(outputs, o)) {
        const Index count = panelOf(outputs, o);
        std::copy_n(spread_of.data() + product * outputs + o, count,
                    packed_.data() + product * numbers() + o * channels + c * count);
      }
    }
  }
}

void WinogradConvolution::spread(const float* image, Index block, Rows<float> out, const float* zeros) const {
  const Index first_y = block / blocksOfRow() * kBlock - shape_.top;
  const Index first_x = block % blocksOfRow() * kBlock - shape_.left;
  const float* pixels[kProducts];
  for (Index i = 0; i < kProducts; ++i) {
    const Index y = first_y + i / kSeen, x = first_x + i % kSeen;
    const bool is_inside = y >= 0 && y < shape_.height && x >= 0 && x < shape_.width;
    pixels[i] = is_inside ? image + (y * shape_.width + x) * shape_.channels : zeros;
  }
  kernels().spreadBlock(pixels, shape_.channels, out);
}

bool WinogradConvolution::collect(Rows<const float> products, Index block, float* out, float* outside) const {
  const Index first_y = block / blocksOfRow() * kBlock, first_x = block % blocksOfRow() * kBlock;
  float* pixels[kBlock * kBlock];
  for (Index i = 0; i < kBlock * kBlock; ++i) {
    const Index y = first_y + i / kBlock, x = first_x + i % kBlock;
    const bool is_inside = y < shape_.outHeight() && x < shape_.outWidth();
    pixels[i] = is_inside ? out + (y * shape_.outWidth() + x) * shape_.channels_out : outside;
  }
  return kernels().collectBlock(products, shape_.channels_out, pixels);
}

bool WinogradConvolution::multiply(const float* image, float* out, Scratch& scratch) const {
  const Index channels = shape_.channels, outputs = shape_.channels_out, tile = kernels().tile_rows;
  const Index most = std::max(kNumbersTogether / (kProducts * (channels + outputs)) / tile, Index{2}) * tile;
  const Index together = std::min(most, blocks());
  const Index seen = together * channels + kApart, products = together * outputs + kApart;
  atLeast(scratch.seen, kProducts * seen);
  atLeast(scratch.products, kProducts * products);
  scratch.zeros.assign(static_cast<std::size_t>(channels), 0.0F);
  atLeast(scratch.outside, outputs);
  bool is_finite = true;
  for (Index first = 0; first < blocks(); first += together) {
    const Index count = std::min(together, blocks() - first);
    for (Index b = 0; b < count; ++b) {
      spread(image, first + b, {scratch.seen.data() + b * channels, seen}, scratch.zeros.data());
    }
    for (Index product = 0; product < kProducts; ++product) {
      const RowBlocks rows{{scratch.seen.data() + product * seen, channels}, count};
      kernels().multiplyPanels(rows, channels, packed_.data() + product * numbers(), outputs, {nullptr, 0},
                               {scratch.products.data() + product * products, outputs});
    }
    for (Index b = 0; b < count; ++b) {
      is_finite &= collect({scratch.products.data() + b * outputs, products}, first + b, out, scratch.outside.data());
    }
  }
  return is_finite;
}

ImageConvolution::ImageConvolution(const ConvolutionShape& shape, const DenseConvolution::Places& places,
                                   const Numbers& weights)
    : form_(shape, places), outputs_(shape.numOutputs()) {
  if (WinogradConvolution::takes(shape)) {
    blocks_.emplace(shape, places, weights);
  } else {
    packed_ = Borrowed<float>(form_.size());
    form_.pack(weights, packed_.data());
  }
}

bool ImageConvolution::multiply(const float* image, float* out, Scratch& scratch) const {
  if (blocks_) return blocks_->multiply(image, out, scratch.blocks);
  return form_.multiply(image, packed_.data(), 0, outputs_, out, scratch.dense);
}

}  // namespace snnjax
