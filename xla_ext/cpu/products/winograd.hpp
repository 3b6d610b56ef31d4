// The dense form of whole images: of 3 x 3 with a stride of 1 in blocks of 2 x 2 outputs (`kernels/winograd.hpp`).
#pragma once

#include <optional>
#include <vector>

#include "convolution.hpp"
#include "cpu/memory.hpp"

namespace snnjax {

class WinogradConvolution {
 public:
  // Memory of one thread.
  struct Scratch {
    std::vector<float> seen, products, zeros, outside;
  };

  WinogradConvolution(const ConvolutionShape& shape, const DenseConvolution::Places& places, const Numbers& weights);
  // Whether a geometry has this form, and so many channels that its products are worth the sums around them.
  static bool takes(const ConvolutionShape& shape);

  // out[numOutputs()] = the convolution of an image; false if a result is not finite (`out` is then not to be used).
  bool multiply(const float* image, float* out, Scratch& scratch) const;

 private:
  // Pixels in a row of the image and in a block of outputs along each axis.
  static constexpr Index kSeen = 4, kBlock = 2, kKernel = 3, kProducts = kSeen * kSeen;

  Index blocksOfRow() const { return (shape_.outWidth() + 1) / kBlock; }
  Index blocks() const { return (shape_.outHeight() + 1) / kBlock * blocksOfRow(); }
  // Numbers of the weights of one product.
  Index numbers() const { return shape_.channels * shape_.channels_out; }
  // out[16][outputs], from one to the next `outputs` apart, = what the products multiply with of the weights of a
  // channel, [3][3][outputs].
  static void spreadWeights(const float* weights, Index outputs, float* out);
  void pack(const DenseConvolution::Places& places, const Numbers& weights);
  void spread(const float* image, Index block, Rows<float> out, const float* zeros) const;
  bool collect(Rows<const float> products, Index block, float* out, float* outside) const;

  ConvolutionShape shape_;
  Borrowed<float> packed_;  // of each product, [panel, channels, outputs of the panel]
};

// A convolution of whole images in the dense form that takes less time.
class ImageConvolution {
 public:
  // Memory of one thread.
  struct Scratch {
    DenseConvolution::Scratch dense;
    WinogradConvolution::Scratch blocks;
  };

  ImageConvolution(const ConvolutionShape& shape, const DenseConvolution::Places& places, const Numbers& weights);
  // As `WinogradConvolution::multiply`.
  bool multiply(const float* image, float* out, Scratch& scratch) const;

 private:
  DenseConvolution form_;
  Index outputs_;
  Borrowed<float> packed_;
  std::optional<WinogradConvolution> blocks_;
};

}  // namespace snnjax
