#include "transposed_convolution.hpp"

#include <algorithm>

namespace snnjax {
namespace {

// A phase along one axis: an input at `first` + i * stride meets the places `place` + j * stride of the kernel, from
// the last to the first by the outputs from number i - `before` on.
struct AxisPhase {
  Index place, places, first, inputs, before;

  AxisPhase(Index phase, Index kernel, Index stride, Index padding, Index length) : place(phase) {
    places = std::max<Index>((kernel - phase + stride - 1) / stride, 0);
    const Index skipped = std::max<Index>((padding - phase + stride - 1) / stride, 0);  // in the padding
    first = phase - padding + skipped * stride;
    inputs = std::max<Index>((length - first + stride - 1) / stride, 0);
    before = places - 1 - skipped;
  }
  bool isEmpty() const { return places == 0 || inputs == 0; }
  Index lastPlace(Index stride) const { return place + (places - 1) * stride; }
  // Zeros behind so many outputs.
  Index behind(Index outputs) const { return inputs + places - 1 - before - outputs; }
};

// Calls visit(y, x) for all phases of a convolution's inputs that meet the kernel.
template <typename Visit>
void eachPhase(const ConvolutionShape& s, Visit visit) {
  for (Index phase_y = 0; phase_y < s.stride_y; ++phase_y) {
    const AxisPhase y(phase_y, s.kernel_height, s.stride_y, s.top, s.height);
    for (Index phase_x = 0; phase_x < s.stride_x && !y.isEmpty(); ++phase_x) {
      const AxisPhase x(phase_x, s.kernel_width, s.stride_x, s.left, s.width);
      if (!x.isEmpty()) visit(y, x);
    }
  }
}

ConvolutionShape shapeOf(const ConvolutionShape& s, const AxisPhase& y, const AxisPhase& x) {
  return {.height = s.outHeight(),
          .width = s.outWidth(),
          .channels = s.channels_out,
          .kernel_height = y.places,
          .kernel_width = x.places,
          .stride_y = 1,
          .stride_x = 1,
          .top = y.before,
          .bottom = y.behind(s.outHeight()),
          .left = x.before,
          .right = x.behind(s.outWidth()),
          .groups = 1,
          .channels_out = s.channels};
}

}  // namespace

bool TransposedConvolution::takes(const ConvolutionShape& shape) {
  bool takes_all = shape.groups == 1 && !shape.isDilated();
  eachPhase(shape, [&](const AxisPhase& y, const AxisPhase& x) {
    takes_all = takes_all && DenseConvolution::takes(shapeOf(shape, y, x));
  });
  return takes_all;
}

TransposedConvolution::TransposedConvolution(const ConvolutionShape& s, const Numbers& weights) : shape_(s) {
  const Index pixel = s.channels * s.channels_out, row = s.kernel_width * pixel;
  eachPhase(s, [&](const AxisPhase& y, const AxisPhase& x) {
    const DenseConvolution::Places places{.count = s.numWeights(),
                                          .first = y.lastPlace(s.stride_y) * row + x.lastPlace(s.stride_x) * pixel,
                                          .row = -s.stride_y * row,
                                          .pixel = -s.stride_x * pixel,
                                          .channel = 1,
                                          .output = s.channels_out};
    phases_.push_back({{shapeOf(s, y, x), places, weights}, y.first, x.first, y.inputs, x.inputs});
  });
}

bool TransposedConvolution::multiply(const float* g, float* out, Scratch& scratch) const {
  bool is_finite = true;
  Index pixels = 0;
  for (const Phase& phase : phases_) pixels += phase.height * phase.width;
  if (pixels < shape_.height * shape_.width) std::fill_n(out, shape_.numInputs(), 0.0F);  // some meet no weight
  for (const Phase& phase : phases_) {
    const Index count = phase.height * phase.width * shape_.channels;
    const bool is_whole = count == shape_.numInputs();
    if (!is_whole) scratch.phase.resize(std::max(scratch.phase.size(), static_cast<std::size_t>(count)));
    float* to = is_whole ? out : scratch.phase.data();
    is_finite &= phase.form.multiply(g, to, scratch.dense);
    if (!is_whole) put(phase, to, out);
  }
  return is_finite;
}

void TransposedConvolution::put(const Phase& phase, const float* from, float* out) const {
  const Index channels = shape_.channels;
  for (Index y = 0; y < phase.height; ++y) {
    const Index row = (phase.first_y + y * shape_.stride_y) * shape_.width + phase.first_x;
    for (Index x = 0; x < phase.width; ++x, from += channels) {
      std::copy_n(from, channels, out + (row + x * shape_.stride_x) * channels);
    }
  }
}

}  // namespace snnjax
