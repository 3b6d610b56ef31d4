// Synapses with delays as the two shares of each, prepared for many products with what arrives.
#pragma once

#include <vector>

#include "delayed_synapses.hpp"

namespace snnjax {

// Between which synapses each neuron's are: no synapse belongs to two of them, whatever the ends are.
std::vector<Index> startsOf(const Synapses& synapses);

// The shares of the synapses of some neurons, each by target. Targets come in blocks.
class SharesOfNeurons {
 public:
  // Of up to so many synapses; step 0 of the target k is row k * rows.
  SharesOfNeurons(const DelayedSynapses& synapses, Index count, Index rows, Index targets_of_block);

  Index blocks() const { return blocks_; }
  // Those of the next neuron.
  void add(Index first, Index end);
  DelayedShares block(Index neuron, Index number) const {
    const auto at = static_cast<std::size_t>(neuron * blocks_ + number);
    const Index start = ends_[at];
    return {rows_.data() + start, now_.data() + start, next_.data() + start, ends_[at + 1] - start};
  }

 private:
  // Whether targets are in ascending order, and none is out of range.
  template <typename Target>
  bool place(Index first, Index count, Index start);
  // Sorts by target, and returns how many are in the range.
  Index sort(Index first, Index count, Index start);

  const DelayedSynapses synapses_;
  std::uint32_t targets_, steps_;
  Index blocks_, rows_of_block_;
  Borrowed<std::uint32_t> rows_;
  Borrowed<float> whole_, now_, next_;
  std::vector<Index> ends_;  // of the blocks of each neuron
};

}  // namespace snnjax
