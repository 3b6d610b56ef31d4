// Synapses sorted by where they end.
#pragma once

#include <algorithm>
#include <vector>

#include "cpu/memory.hpp"
#include "synapses.hpp"

namespace snnjax {

// The incoming synapses of each of some receivers (neurons, or a few targets together) by ascending sender. Each
// synapse has one sender at most, whatever the ends are.
class IncomingSynapses {
 public:
  struct Entry {
    std::uint32_t sender, synapse;
  };
  static constexpr Index kNone = -1;

  // receiverOf(synapse, target) is the receiver, or kNone: then the synapse is left out, as is one whose target is out
  // of range.
  template <typename ReceiverOf>
  IncomingSynapses(const Synapses& synapses, Index receivers, ReceiverOf receiverOf)
      : starts_(static_cast<std::size_t>(receivers + 2)), entries_(synapses.count) {
    // Between the starts one is left free until all are sorted.
    each(synapses, receiverOf, [&](Index, Index, Index receiver) { ++start(receiver + 2); });
    for (Index receiver = 0; receiver < receivers; ++receiver) start(receiver + 2) += start(receiver + 1);
    each(synapses, receiverOf, [&](Index sender, Index synapse, Index receiver) {
      entries_[start(receiver + 1)++] = {static_cast<std::uint32_t>(sender), static_cast<std::uint32_t>(synapse)};
    });
  }

  const Entry* begin(Index receiver) const { return entries_.data() + starts_[static_cast<std::size_t>(receiver)]; }
  const Entry* end(Index receiver) const { return begin(receiver + 1); }
  // The first of a receiver whose sender is not below this one.
  const Entry* from(Index receiver, Index sender) const {
    return std::lower_bound(begin(receiver), end(receiver), sender,
                            [](const Entry& a, Index b) { return a.sender < b; });
  }

 private:
  template <typename ReceiverOf, typename Visit>
  static void each(const Synapses& synapses, ReceiverOf receiverOf, Visit visit) {
    Index synapse = 0;
    for (Index sender = 0; sender < synapses.neurons; ++sender) {
      for (const Index end = synapses.end(sender); synapse < end; ++synapse) {
        const Index target = synapses.target(synapse);
        if (target >= synapses.outputs) continue;
        const Index receiver = receiverOf(synapse, target);
        if (receiver != kNone) visit(sender, synapse, receiver);
      }
    }
  }

  Index& start(Index receiver) { return starts_[static_cast<std::size_t>(receiver)]; }

  std::vector<Index> starts_;
  Borrowed<Entry> entries_;
};

}  // namespace snnjax
