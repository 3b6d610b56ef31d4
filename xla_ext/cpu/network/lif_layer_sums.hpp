// What the cotangents of a layer's constants are sums of.
#pragma once

#include <algorithm>
#include <array>

#include "lif_layer.hpp"

namespace snnjax {

// The sums over all steps and samples: by GlifConstant, and behind these of the cotangents of the current, before any
// gain, and of those times the given currents.
inline constexpr unsigned kSumCurrent = kGlifConstants, kSumGiven = kGlifConstants + 1, kSums = kGlifConstants + 2;

inline bool isSummed(const LayerBackward& pass, unsigned kind) {
  if (kind == kSumCurrent) return pass.g_bias || sumsGain(pass);
  if (kind == kSumGiven) return static_cast<bool>(pass.g_factor);
  if (kind == Gain && sumsGain(pass)) return false;
  return static_cast<bool>(pass.g_constants.at(kind));
}

// Those that are wanted, in float64; of a recurrent layer those of each block of samples. Blocks are finally added in
// order, so the result does not depend on which thread had which samples.
class Sums {
 public:
  explicit Sums(const LayerBackward& pass)
      : samples_(pass.layer.isRecurrent() ? backwardBlock(pass) : std::max<Index>(pass.extent.batch, 1)),
        blocks_(std::max<Index>((pass.extent.batch + samples_ - 1) / samples_, 1)),
        neurons_(pass.layer.neurons()) {
    for (unsigned kind = 0; kind < kSums; ++kind) places_[kind] = isSummed(pass, kind) ? kinds_++ : -1;
    memory_ = Buffer<double>(blocks_ * kinds_ * neurons_);
  }

  Index kinds() const { return kinds_; }
  // The number of a kind among those wanted, -1 for others.
  Index place(unsigned kind) const { return places_[kind]; }
  // Those of the block of a sample.
  double* of(Index sample, Index place) { return memory_.data() + (sample / samples_ * kinds_ + place) * neurons_; }

  // Of a kind that is wanted.
  double total(unsigned kind, Index neuron) const {
    double sum = 0.0;
    for (Index block = 0; block < blocks_; ++block) {
      sum += memory_[(block * kinds_ + place(kind)) * neurons_ + neuron];
    }
    return sum;
  }

 private:
  Index samples_, blocks_, neurons_, kinds_ = 0;  // samples of a block
  std::array<Index, static_cast<std::size_t>(kSums)> places_{};
  Buffer<double> memory_;
};

}  // namespace snnjax
