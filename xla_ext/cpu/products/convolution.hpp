// Convolutions in one or two dimensions over flat neurons: spike by spike, and densely where most neurons spike.
//
// Everything here is for one image at a time, row-major over (height, width, channels), and for outputs
// [first, first + columns) of the flat result, so that callers can divide outputs among threads freely; weights are
// packed once and read by all.
#pragma once

#include <algorithm>
#include <vector>

#include "cpu/kernels.hpp"
#include "cpu/numbers.hpp"

namespace snnjax {

// The geometry of a convolution (a cross-correlation); one dimension is an image of height 1. Weights are
// [kernel_height, kernel_width, channels / groups, channels_out]. The places of the kernel are `dilation` pixels apart,
// and those of the image `input_dilation`, with zeros between them: so a convolution is transposed.
struct ConvolutionShape {
  Index height, width, channels;  // of an image
  Index kernel_height, kernel_width, stride_y, stride_x;
  Index top, bottom, left, right;  // zeros around the image
  Index groups, channels_out;
  Index dilation_y = 1, dilation_x = 1, input_dilation_y = 1, input_dilation_x = 1;

  // From static values of these names.
  template <typename Numbers>
  static ConvolutionShape of(const Numbers& n) {
    return {
        .height = n.height,
        .width = n.width,
        .channels = n.channels,
        .kernel_height = n.kernel_height,
        .kernel_width = n.kernel_width,
        .stride_y = n.stride_y,
        .stride_x = n.stride_x,
        .top = n.top,
        .bottom = n.bottom,
        .left = n.left,
        .right = n.right,
        .groups = n.groups,
        .channels_out = n.channels_out,
        .dilation_y = n.dilation_y,
        .dilation_x = n.dilation_x,
        .input_dilation_y = n.input_dilation_y,
        .input_dilation_x = n.input_dilation_x,
    };
  }

  // Pixels that the kernel spans, and those of the image with all zeros.
  Index spanY() const { return (kernel_height - 1) * dilation_y + 1; }
  Index spanX() const { return (kernel_width - 1) * dilation_x + 1; }
  Index roomY() const { return (height - 1) * input_dilation_y + 1 + top + bottom; }
  Index roomX() const { return (width - 1) * input_dilation_x + 1 + left + right; }
  bool isDilated() const {
    return dilation_y != 1 || dilation_x != 1 || input_dilation_y != 1 || input_dilation_x != 1;
  }
  Index outHeight() const { return (roomY() - spanY()) / stride_y + 1; }
  Index outWidth() const { return (roomX() - spanX()) / stride_x + 1; }
  Index numInputs() const { return height * width * channels; }
  Index numOutputs() const { return outHeight() * outWidth() * channels_out; }
  Index groupInputs() const { return channels / groups; }
  Index groupOutputs() const { return channels_out / groups; }
  Index numWeights() const { return kernel_height * kernel_width * groupInputs() * channels_out; }
  // Whether it is valid: the kernel fits into the padded image, and every number above into 31 bits.
  bool isValid() const;
};

// One axis of the patch of a pixel. It meets every `apart`-th place of the kernel from right to left, beginning with
// its phase, and these outputs are `step` from each other: side by side unless the kernel is dilated.
struct PatchAxis {
  Index length, stride, dilation;  // of the kernel
  Index apart, step;

  PatchAxis(Index length_of, Index stride_of, Index dilation_of);
  Index phases() const { return std::min(apart, length); }  // with any weight
  Index places(Index phase) const { return (length - phase + apart - 1) / apart; }
  // That of a padded position; phases() if it meets no weight.
  Index phaseOf(Index position) const;
};

// Weights in patches: packed as [phase y, phase x, channel, row, column, output of the group], rows and columns in the
// order of the outputs.
class PatchWeights {
 public:
  explicit PatchWeights(const ConvolutionShape& shape);

  Index size() const { return shape_.numWeights(); }
  void pack(const Numbers& weights, float* packed) const;
  // Writes packed sums as weights.
  void unpack(const float* packed, const WritableNumbers& weights) const;
  // Calls visit(place among the weights, packed place) for every run of outputs of a group.
  template <typename Visit>
  void eachRun(Visit visit) const;

 private:
  friend class ConvolutionPatches;
  Index start(Index phase_y, Index phase_x) const {
    return starts_[static_cast<std::size_t>(phase_y * x_.phases() + phase_x)];
  }

  ConvolutionShape shape_;
  PatchAxis y_, x_;
  std::vector<Index> starts_;
};

template <typename Visit>
void PatchWeights::eachRun(Visit visit) const {
  const Index run = shape_.groupOutputs(), inputs = shape_.groupInputs();
  for (Index y = 0; y < shape_.kernel_height; ++y) {
    for (Index x = 0; x < shape_.kernel_width; ++x) {
      const Index phase_y = y % y_.apart, phase_x = x % x_.apart;
      const Index rows = y_.places(phase_y), pixels = x_.places(phase_x);
      const Index row = rows - 1 - y / y_.apart, column = pixels - 1 - x / x_.apart;
      for (Index c = 0; c < shape_.channels; ++c) {
        const Index patch = (c * rows + row) * pixels + column;
        const Index weight = ((y * shape_.kernel_width + x) * inputs + c % inputs) * shape_.channels_out;
        visit(weight + c / inputs * run, start(phase_y, phase_x) + patch * run);
      }
    }
  }
}

// The sparse form: every spike touches its patch and nothing else. Ids must be below numInputs().
class ConvolutionPatches {
 public:
  ConvolutionPatches(const PatchWeights& weights, Index first, Index columns);

  // out[columns] += the convolution of a row of spikes.
  void add(const SpikeRow& spikes, const float* packed, float* out) const {
    kernels().addPatches(spikes, table(), packed, out);
  }
  // packed += the gradient of the weights by g[columns].
  void addGradient(const SpikeRow& spikes, float* packed, const float* g) const {
    kernels().addPatchGradients(spikes, table(), packed, g);
  }
  // out[k] = the cotangent of the input ids[k] by g[columns].
  void dot(const std::uint32_t* ids, Index count, const float* packed, const float* g, float* out) const {
    kernels().dotPatches(ids, count, table(), packed, g, out);
  }

 private:
  PixelPatches table() const {
    PixelPatches patches = patches_;
    patches.of_pixel = of_pixel_.data();
    return patches;
  }

  PixelPatches patches_;
  std::vector<PixelPatch> of_pixel_;
};

// The dense form, for one group of channels: products of overlapping rows. Of the image there is a copy with zeros
// around it, column by column, and of it, for each row of outputs, the window that this row sees: [x, row of the
// kernel, channel]. What one output sees lies in it contiguously, and the next output sees what begins `stride_x`
// pixels on. Outputs [first, first + columns) are whole pixels here.
class DenseConvolution {
 public:
  // Memory of one thread.
  struct Scratch {
    std::vector<float> columns, window, rows, rest;
  };

  // Where the weight of a place of the kernel, a channel and an output lies among all weights.
  struct Places {
    Index count;                               // of all weights
    Index first, row, pixel, channel, output;  // the first, and steps from one to the next
  };

  // Those of weights as they are stored.
  static Places placesOf(const ConvolutionShape& shape);

  explicit DenseConvolution(const ConvolutionShape& shape) : DenseConvolution(shape, placesOf(shape)) {}
  DenseConvolution(const ConvolutionShape& shape, const Places& places);
  // Whether a geometry has this form in a reasonable amount of memory.
  static bool takes(const ConvolutionShape& shape);

  // Packed weights, and their gradient: size() numbers, [panel, kernel_width, kernel_height, channels, outputs of the
  // panel], two vectors of outputs a panel, or one at last: a panel stays in the first-level cache.
  Index size() const { return depth() * stride_; }
  void pack(const Numbers& weights, float* packed) const;
  // sums[ky, kx, c, o] += the packed gradient; as weights lie.
  void addTo(const float* packed, float* sums) const;

  // out[columns] = the convolution of an image; false if a result is not finite (`out` is then not to be used).
  bool multiply(const float* image, const float* packed, Index first, Index columns, float* out,
                Scratch& scratch) const;
  // packed += the gradient of the weights by g[columns], all of which must be finite.
  void addGradient(const float* image, const float* g, Index first, Index columns, float* packed,
                   Scratch& scratch) const;

 private:
  Index paddedHeight() const { return (shape_.outHeight() - 1) * shape_.stride_y + shape_.kernel_height; }
  Index paddedWidth() const { return (shape_.outWidth() - 1) * shape_.stride_x + shape_.kernel_width; }
  Index depth() const { return shape_.kernel_width * shape_.kernel_height * shape_.channels; }
  // Outputs of the panel that begins with an output.
  Index panel(Index output) const { return std::min(2 * kernels().lanes, stride_ - output); }
  // Calls visit(place among the weights, packed place, outputs) for each row of each panel.
  template <typename Visit>
  void eachPanel(Visit visit) const;
  // Calls visit(row, first pixel, pixels) for the outputs of a range.
  template <typename Visit>
  void eachRow(Index first, Index columns, Visit visit) const;
  // out[pixel] = the outputs of some pixels, of which `seen` holds what they see; false if one is not finite.
  bool multiplyPixels(Rows<const float> seen, Index pixels, const float* packed, Rows<float> out) const;
  // What the outputs of a range see of an image, column by column, with the zeros around it.
  void copyColumns(const float* image, Index first, Index columns, Scratch& scratch) const;
  // What the pixels of a row of outputs from one on see, `rowStride()` from one to the next.
  Rows<const float> window(Index row, Index pixel, Scratch& scratch) const;
  Index columnLength() const { return paddedHeight() * shape_.channels; }
  Index windowColumn() const { return shape_.kernel_height * shape_.channels; }

  ConvolutionShape shape_;
  Places places_;
  Index stride_;  // outputs, padded to whole vectors
};

}  // namespace snnjax
