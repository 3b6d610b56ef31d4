// The gradient of the weights of convolutions by sparse spikes, channel by channel (`padded_outputs.hpp`).
#pragma once

#include "cpu/parallel.hpp"
#include "padded_outputs.hpp"

namespace snnjax {

class ChannelGradient {
 public:
  // By all rows of spikes but those that `apart` marks, whose geometry `PaddedOutputs` takes.
  ChannelGradient(const ListedRows& spikes, const std::vector<char>& apart, const ConvolutionShape& shape,
                  const Threads& threads);

  // sums[weights as they lie] = the gradient by rows of cotangents of the outputs.
  void sum(const Numbers& g, float* sums, const Threads& threads) const;

 private:
  // sums[blocks] = that by one part of the rows.
  void sumPart(const Numbers& g, Index part, PaddedOutputs::Blocks blocks, float* sums) const;

  PaddedOutputs outputs_;
  Index rows_, of_row_, parts_;  // cotangents of a row; parts of the rows that are summed apart
  std::vector<SpikesByChannel> groups_;
};

}  // namespace snnjax
