#include "convolution.hpp"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <numeric>

namespace snnjax {
namespace {

constexpr Index kMostNeurons = (Index{1} << 31) - 1;
// Floats in the image copies of the dense form.
constexpr double kMostCopied = double{1 << 22};
constexpr Index kFour = 4;  // floats that are copied at once
constexpr Index kMostTileRows = 8;

Index roundUpTo(Index count, Index unit) { return (count + unit - 1) / unit * unit; }

// Whether a product of lengths fits into 31 bits, as each of them does.
bool fits(std::initializer_list<Index> lengths) {
  Index product = 1;
  for (const Index length : lengths) {
    product *= length;
    if (product > kMostNeurons) return false;
  }
  return true;
}

// Copies fours of floats, up to three floats more than `count`.
void copyFours(float* to, const float* from, Index count) {
  constexpr Index kMany = 4 * kFour;
  Index i = 0;
  for (; i + kMany <= count; i += kMany) std::memcpy(to + i, from + i, kMany * sizeof(float));
  for (; i < count; i += kFour) std::memcpy(to + i, from + i, kFour * sizeof(float));
}

// Room for this many floats; the contents stay.
void atLeast(std::vector<float>& floats, Index count) {
  if (static_cast<Index>(floats.size()) < count) floats.resize(static_cast<std::size_t>(count));
}

}  // namespace

bool ConvolutionShape::isValid() const {
  const auto inRange = [](std::initializer_list<Index> numbers, Index least) {
    return std::all_of(numbers.begin(), numbers.end(),
                       [&](Index number) { return number >= least && number <= kMostNeurons; });
  };
  return inRange({height, width, channels, kernel_height, kernel_width, stride_y, stride_x, groups, channels_out,
                  dilation_y, dilation_x, input_dilation_y, input_dilation_x},
                 1) &&
         inRange({top, bottom, left, right}, 0) && channels % groups == 0 && channels_out % groups == 0 &&
         inRange({roomY(), roomX()}, 1) && spanY() <= roomY() && spanX() <= roomX() &&
         fits({height, width, channels}) && fits({outHeight(), outWidth(), channels_out}) &&
         fits({kernel_height, kernel_width, groupInputs(), channels_out});
}

// Places k of the kernel meet position p where p - k dilation is a multiple of the stride.
PatchAxis::PatchAxis(Index length_of, Index stride_of, Index dilation_of)
    : length(length_of),
      stride(stride_of),
      dilation(dilation_of),
      apart(stride_of / std::gcd(stride_of, dilation_of)),
      step(dilation_of / std::gcd(stride_of, dilation_of)) {}

Index PatchAxis::phaseOf(Index position) const {
  Index phase = 0;
  while (phase < phases() && (position - phase * dilation) % stride != 0) ++phase;
  return phase;
}

PatchWeights::PatchWeights(const ConvolutionShape& shape)
    : shape_(shape),
      y_(shape.kernel_height, shape.stride_y, shape.dilation_y),
      x_(shape.kernel_width, shape.stride_x, shape.dilation_x) {
  Index start = 0;
  for (Index y = 0; y < y_.phases(); ++y) {
    for (Index x = 0; x < x_.phases(); ++x) {
      starts_.push_back(start);
      start += y_.places(y) * x_.places(x) * shape.channels * shape.groupOutputs();
    }
  }
}

void PatchWeights::pack(const Numbers& weights, float* packed) const {
  eachRun([&](Index from, Index to) { weights.read(from, shape_.groupOutputs(), packed + to); });
}

void PatchWeights::unpack(const float* packed, const WritableNumbers& weights) const {
  eachRun([&](Index to, Index from) { weights.write(to, shape_.groupOutputs(), packed + from); });
}

ConvolutionPatches::ConvolutionPatches(const PatchWeights& weights, Index first, Index columns)
    : of_pixel_(static_cast<std::size_t>(weights.shape_.height * weights.shape_.width)) {
  const ConvolutionShape& s = weights.shape_;
  const Index run = s.groupOutputs(), row_length = s.outWidth() * s.channels_out;
  patches_ = {nullptr,
              static_cast<std::uint32_t>(s.channels),
              static_cast<std::uint32_t>(s.groupInputs()),
              run,
              s.channels_out * weights.x_.step,
              row_length * weights.y_.step,
              first,
              columns};
  const Index first_row = first / row_length, end_row = (first + columns + row_length - 1) / row_length;
  // The part of the patch along one axis that counts: from which row (column) on, how many, and the first output.
  struct Part {
    Index from = 0, count = 0, out = 0;
  };
  const auto partOf = [](Index position, Index phase, const PatchAxis& axis, Index least, Index end) {
    const Index places = axis.places(phase), step = axis.step;
    const Index out = (position - phase * axis.dilation) / axis.stride - (places - 1) * step;
    // Places whose outputs lie below a limit.
    const auto below = [&](Index limit) { return limit > out ? (limit - out + step - 1) / step : Index{0}; };
    const Index from = below(least);
    return Part{from, std::max<Index>(0, std::min(places, below(end)) - from), out + from * step};
  };
  std::vector<Part> columns_of(static_cast<std::size_t>(s.width));
  std::vector<Index> phases_x(columns_of.size());
  for (Index x = 0; x < s.width; ++x) {
    const Index position = x * s.input_dilation_x + s.left, phase = weights.x_.phaseOf(position);
    if (phase >= weights.x_.phases()) continue;  // met by no weight
    columns_of[static_cast<std::size_t>(x)] = partOf(position, phase, weights.x_, 0, s.outWidth());
    phases_x[static_cast<std::size_t>(x)] = phase;
  }
  for (Index y = 0; y < s.height; ++y) {
    const Index position = y * s.input_dilation_y + s.top, phase_y = weights.y_.phaseOf(position);
    if (phase_y >= weights.y_.phases()) continue;
    const Index rows = weights.y_.places(phase_y);
    const Part own_rows = partOf(position, phase_y, weights.y_, first_row, end_row);
    if (own_rows.count == 0) continue;  // most rows of an image are far from a few columns
    for (Index x = 0; x < s.width; ++x) {
      const Part& own_pixels = columns_of[static_cast<std::size_t>(x)];
      if (own_pixels.count == 0) continue;
      const Index phase_x = phases_x[static_cast<std::size_t>(x)], pixels = weights.x_.places(phase_x);
      of_pixel_[static_cast<std::size_t>(y * s.width + x)] = {
          static_cast<std::uint32_t>(weights.start(phase_y, phase_x) +
                                     (own_rows.from * pixels + own_pixels.from) * run),
          static_cast<std::uint32_t>(rows * pixels * run),
          static_cast<std::uint32_t>(pixels * run),
          static_cast<std::uint32_t>(own_rows.out * row_length + own_pixels.out * s.channels_out),
          static_cast<std::uint32_t>(own_rows.count),
          static_cast<std::uint32_t>(own_pixels.count)};
    }
  }
}

DenseConvolution::Places DenseConvolution::placesOf(const ConvolutionShape& shape) {
  const Index pixel = shape.channels * shape.channels_out;
  return {.count = shape.numWeights(),
          .first = 0,
          .row = shape.kernel_width * pixel,
          .pixel = pixel,
          .channel = shape.channels_out,
          .output = 1};
}

DenseConvolution::DenseConvolution(const ConvolutionShape& shape, const Places& places)
    : shape_(shape), places_(places), stride_(roundUpTo(shape.channels_out, kernels().lanes)) {}

bool DenseConvolution::takes(const ConvolutionShape& shape) {
  if (shape.isDilated()) return false;  // the pixels that an output sees do not lie side by side
  const DenseConvolution own(shape);
  const auto width = static_cast<double>(own.paddedWidth());
  const auto rows = static_cast<double>(std::max(own.paddedHeight(), shape.kernel_height));
  return shape.groups == 1 && width * rows * static_cast<double>(shape.channels) < kMostCopied;
}

template <typename Visit>
void DenseConvolution::eachPanel(Visit visit) const {
  Index packed = 0;
  for (Index o = 0; o < stride_; o += panel(o)) {
    const Index count = std::clamp<Index>(shape_.channels_out - o, 0, panel(o));
    for (Index kx = 0; kx < shape_.kernel_width; ++kx) {
      for (Index ky = 0; ky < shape_.kernel_height; ++ky) {
        for (Index c = 0; c < shape_.channels; ++c, packed += panel(o)) {
          visit(places_.first + ky * places_.row + kx * places_.pixel + c * places_.channel + o * places_.output,
                packed, count);
        }
      }
    }
  }
}

void DenseConvolution::pack(const Numbers& weights, float* packed) const {
  std::vector<float> all(static_cast<std::size_t>(places_.count));
  weights.read(0, places_.count, all.data());
  std::fill_n(packed, depth() * stride_, 0.0F);
  eachPanel([&](Index from, Index to, Index count) {
    for (Index i = 0; i < count; ++i) packed[to + i] = all[static_cast<std::size_t>(from + i * places_.output)];
  });
}

void DenseConvolution::addTo(const float* packed, float* sums) const {
  eachPanel([&](Index to, Index from, Index count) {
    for (Index i = 0; i < count; ++i) sums[to + i * places_.output] += packed[from + i];
  });
}

template <typename Visit>
void DenseConvolution::eachRow(Index first, Index columns, Visit visit) const {
  const Index width = shape_.outWidth(), end = (first + columns) / shape_.channels_out;
  for (Index pixel = first / shape_.channels_out; pixel < end;) {
    const Index row = pixel / width, count = std::min(end, (row + 1) * width) - pixel;
    visit(row, pixel - row * width, count);
    pixel += count;
  }
}

void DenseConvolution::copyColumns(const float* image, Index first, Index columns, Scratch& scratch) const {
  const Index channels = shape_.channels, outputs = shape_.outWidth() * shape_.channels_out;
  atLeast(scratch.columns, paddedWidth() * columnLength() + kFour);
  // The padded rows that the outputs see.
  const Index top = first / outputs * shape_.stride_y;
  const Index bottom = (first + columns - 1) / outputs * shape_.stride_y + shape_.kernel_height;
  for (Index x = 0; x < paddedWidth(); ++x) {
    std::fill_n(scratch.columns.data() + x * columnLength() + top * channels, (bottom - top) * channels, 0.0F);
  }
  const Index first_x = std::max<Index>(0, -shape_.left), first_y = std::max<Index>(0, top - shape_.top);
  const Index end_x = std::min(shape_.width, paddedWidth() - shape_.left);
  const Index end_y = std::min(shape_.height, bottom - shape_.top);
  for (Index y = first_y; y < end_y; ++y) {
    const float* from = image + (y * shape_.width + first_x) * channels;
    float* to = scratch.columns.data() + (first_x + shape_.left) * columnLength() + (y + shape_.top) * channels;
    for (Index x = first_x; x < end_x; ++x, from += channels, to += columnLength()) {
      // The next rows overwrite what lies behind the channels, if they have as many.
      if (channels % kFour == 0 || (end_y - 1 - y) * channels >= kFour - 1) {
        copyFours(to, from, channels);
      } else {
        for (Index c = 0; c < channels; ++c) to[c] = from[c];
      }
    }
  }
}

Rows<const float> DenseConvolution::window(Index row, Index pixel, Scratch& scratch) const {
  const Index length = windowColumn(), used = paddedWidth() * length;
  atLeast(scratch.window, used + kFour);
  const float* from = scratch.columns.data() + row * shape_.stride_y * shape_.channels;
  float* to = scratch.window.data();
  for (Index x = pixel * shape_.stride_x; x < paddedWidth(); ++x) {
    copyFours(to + x * length, from + x * columnLength(), length);
  }
  return {to + pixel * shape_.stride_x * length, shape_.stride_x * length};
}

bool DenseConvolution::multiplyPixels(Rows<const float> seen, Index pixels, const float* packed,
                                      Rows<float> out) const {
  bool is_finite = true;
  for (Index o = 0; o < stride_; o += panel(o)) {
    is_finite &= kernels().multiplyRows(seen, pixels, depth(), {packed + o * depth(), panel(o)}, panel(o), {nullptr, 0},
                                        {out.data + o, out.stride});
  }
  return is_finite;
}

// The remainder of a row of outputs after its last whole tile is gathered with those of the next rows if it is less
// than half a tile: a product of so few pixels takes longer than the copies.
bool DenseConvolution::multiply(const float* image, const float* packed, Index first, Index columns, float* out,
                                Scratch& scratch) const {
  copyColumns(image, first, columns, scratch);
  const Index outputs = shape_.channels_out, tile = kernels().tile_rows, length = depth();
  atLeast(scratch.rows, std::max(shape_.outWidth(), kMostTileRows) * stride_);
  atLeast(scratch.rest, kMostTileRows * length + kFour);
  float* places[kMostTileRows];
  Index gathered = 0;
  bool is_finite = true;
  const auto finishGathered = [&] {
    is_finite &= multiplyPixels({scratch.rest.data(), length}, gathered, packed, {scratch.rows.data(), stride_});
    for (Index i = 0; i < gathered; ++i) std::copy_n(scratch.rows.data() + i * stride_, outputs, places[i]);
    gathered = 0;
  };
  eachRow(first, columns, [&](Index row, Index pixel, Index count) {
    const Rows<const float> seen = window(row, pixel, scratch);
    const bool gathers = 2 * (count % tile) < tile;
    const Index whole = gathers ? count / tile * tile : count;
    const bool in_place = stride_ == outputs;
    float* to = in_place ? out : scratch.rows.data();
    is_finite &= multiplyPixels(seen, whole, packed, {to, stride_});
    for (Index i = 0; i < whole && !in_place; ++i) {
      // All but the last pixel may be copied with what follows it, which the next one overwrites.
      const bool fours = outputs >= kFour && i + 1 < whole;
      fours ? copyFours(out + i * outputs, to + i * stride_, outputs)
            : static_cast<void>(std::copy_n(to + i * stride_, outputs, out + i * outputs));
    }
    for (Index i = whole; i < count; ++i) {
      copyFours(scratch.rest.data() + gathered * length, seen.row(i), length);
      places[gathered++] = out + i * outputs;
      if (gathered == tile) finishGathered();
    }
    out += count * outputs;
  });
  if (gathered > 0) finishGathered();
  return is_finite;
}

void DenseConvolution::addGradient(const float* image, const float* g, Index first, Index columns, float* packed,
                                   Scratch& scratch) const {
  copyColumns(image, first, columns, scratch);
  const Index outputs = shape_.channels_out;
  const bool in_place = stride_ == outputs;
  if (!in_place) atLeast(scratch.rows, shape_.outWidth() * stride_);
  eachRow(first, columns, [&](Index row, Index pixel, Index count) {
    float* padded = scratch.rows.data();
    for (Index i = 0; i < count && !in_place; ++i, padded += stride_) {
      std::fill(std::copy_n(g + i * outputs, outputs, padded), padded + stride_, 0.0F);
    }
    const float* own_g = in_place ? g : scratch.rows.data();
    const Rows<const float> seen = window(row, pixel, scratch);
    for (Index o = 0; o < stride_; o += panel(o)) {
      kernels().addProducts(seen, count, depth(), {packed + o * depth(), panel(o)}, panel(o), {own_g + o, stride_});
    }
    g += count * outputs;
  });
}

}  // namespace snnjax
