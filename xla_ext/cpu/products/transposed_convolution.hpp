// The dense form of what carries cotangents of a convolution's outputs to those of its inputs.
#pragma once

#include <vector>

#include "winograd.hpp"

namespace snnjax {

// Inputs that lie as many pixels apart as the stride meet the same places of the kernel. So each such phase of the
// image is a convolution of the cotangents with these places, of a stride of 1.
class TransposedConvolution {
 public:
  // Memory of one thread.
  struct Scratch {
    ImageConvolution::Scratch dense;
    std::vector<float> phase;
  };

  TransposedConvolution(const ConvolutionShape& shape, const Numbers& weights);
  // Whether a geometry has this form in a reasonable amount of memory.
  static bool takes(const ConvolutionShape& shape);

  // out[numInputs()] = the cotangents by g[numOutputs()]; false if one is not finite (`out` is then not to be used).
  bool multiply(const float* g, float* out, Scratch& scratch) const;

 private:
  struct Phase {
    ImageConvolution form;
    Index first_y, first_x, height, width;  // its first pixel, and how many there are
  };

  void put(const Phase& phase, const float* from, float* out) const;

  ConvolutionShape shape_;
  std::vector<Phase> phases_;
};

}  // namespace snnjax
