// Which neurons enter a list that is too short for all: the largest membranes, ties by a fixed hash of the id.
#pragma once

#include <vector>

#include "kernels.hpp"

namespace snnjax {

// One row of spikes and of neurons near the threshold, as bits of `words` words; both are cut to at most `capacity`
// neurons, spikes before the others. `v` holds the row's membranes; it is read only where something is cut.
class Selection {
 public:
  Selection(Index capacity, Index words) : capacity_(capacity), words_(words) {}

  template <typename ReadMembrane>
  void cut(std::uint64_t* spikes, std::uint64_t* near, ReadMembrane membrane) {
    const Index num_spikes = count(spikes), num_near = count(near);
    if (num_spikes > capacity_) shorten(spikes, capacity_, membrane);
    const Index left = num_spikes > capacity_ ? 0 : capacity_ - num_spikes;
    if (num_near > left) shorten(near, left, membrane);
  }

  Index count(const std::uint64_t* bits) const {
    Index total = 0;
    for (Index word = 0; word < words_; ++word) total += countBits(bits[word]);
    return total;
  }

 private:
  struct Candidate {
    float v;
    std::uint32_t hash, id;
  };

  template <typename ReadMembrane>
  void shorten(std::uint64_t* bits, Index slots, ReadMembrane membrane) {
    candidates_.clear();
    for (Index word = 0; word < words_; ++word) {
      for (std::uint64_t rest = bits[word]; rest != 0; rest &= rest - 1) {
        const auto id = static_cast<std::uint32_t>(word * 64 + __builtin_ctzll(rest));
        candidates_.push_back({membrane(static_cast<Index>(id)), hashOf(id), id});
      }
      bits[word] = 0;
    }
    keepLargest(slots);
    for (const Candidate& kept : candidates_) bits[kept.id / 64] |= std::uint64_t{1} << (kept.id % 64);
  }

  void keepLargest(Index slots);
  static std::uint32_t hashOf(std::uint32_t id);

  Index capacity_, words_;
  std::vector<Candidate> candidates_;
};

}  // namespace snnjax
