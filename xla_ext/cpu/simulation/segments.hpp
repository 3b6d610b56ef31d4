// The synapses of `simulate`, by block of neurons that receive, sender and delay (snnjax/_delayed_synapses.py).
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "cpu/numbers.hpp"

namespace snnjax {

// Synapses of one sender to one block with one delay, one after the other.
struct Segment {
  std::uint32_t first;  // synapse
  std::uint16_t count, delay;
  std::uint32_t sender;
};

// Nothing is trusted: ends may be in any order and out of range.
struct DelayedSynapses {
  const std::int32_t* ends;       // [blocks, neurons, 2]: behind the last segment and the last synapse of a sender
  const std::uint16_t* segments;  // [num_segments, 2]: delay and number of synapses
  const void* words;              // [count]: places in the block, uint16; or below weights in bfloat16, uint32
  const void* weights;            // [count], float32 or int8; nullptr: in the words
  bool are_int8;
  Index blocks, neurons, num_segments, count;

  // Calls visit(segment) for all of a sender.
  template <typename Visit>
  void each(Index block, Index sender, Visit visit) const {
    const Index row = block * neurons + sender;
    Index segment = row == 0 ? 0 : within(ends[2 * row - 2], num_segments);
    Index first = row == 0 ? 0 : within(ends[2 * row - 1], count);
    for (const Index end = within(ends[2 * row], num_segments); segment < end; ++segment) {
      const Index length = std::min<Index>(segments[2 * segment + 1], count - first);
      visit(Segment{static_cast<std::uint32_t>(first), static_cast<std::uint16_t>(length), segments[2 * segment],
                    static_cast<std::uint32_t>(sender)});
      first += length;
    }
  }

  // The synapses of a block.
  std::array<Index, 2> rangeOf(Index block) const {
    const auto endOf = [&](Index of) { return of < 0 ? 0 : within(ends[2 * ((of + 1) * neurons - 1) + 1], count); };
    return {endOf(block - 1), endOf(block)};
  }

  // The place in its block of the target of a synapse: receptor * stride + neuron.
  Index place(Index synapse) const {
    if (weights != nullptr) return static_cast<const std::uint16_t*>(words)[synapse];
    return static_cast<const std::uint32_t*>(words)[synapse] & 0xffff;
  }

 private:
  static Index within(Index number, Index count) { return std::clamp<Index>(number, 0, count); }
};

// All places that 16 bits name: no synapse reaches beyond a row of so many, whatever its word is.
inline constexpr Index kPlaces = Index{1} << 16;

// What each spike of the last steps multiplies weights with, [slots, blocks, stride]; data nullptr: 1.
struct History {
  float* data = nullptr;
  Index slots = 0, blocks = 0, stride = 0;

  // The numbers of a block in a step, which may be below 0.
  float* row(Index step, Index block) const { return data + (((step + slots) % slots) * blocks + block) * stride; }
  float& at(Index step, std::uint32_t sender) const {
    const Index number = sender;
    return blocks == 1 ? row(step, 0)[number] : row(step, number % blocks)[number / blocks];
  }
};

// row[place] += share * weight for the synapses of the segments that arrive in a step, in their order; `release` says
// the share of each spike. Weights of 8 bits are added without their scale: as whole numbers, their sums are exact.
void addSegments(const std::vector<Segment>& segments, const DelayedSynapses& synapses, Index step,
                 const History& release, float* row);

}  // namespace snnjax
