#include "selection.hpp"

#include <algorithm>

namespace snnjax {

void Selection::keepLargest(Index slots) {
  if (slots >= static_cast<Index>(candidates_.size())) return;
  const auto before = [](const Candidate& a, const Candidate& b) {
    return a.v > b.v || (a.v == b.v && a.hash < b.hash);
  };
  std::nth_element(candidates_.begin(), candidates_.begin() + slots, candidates_.end(), before);
  candidates_.resize(static_cast<std::size_t>(slots));
}

// The 32-bit finaliser of MurmurHash3 (Appleby 2011), a bijection: no two ids tie. As in snnjax/ops/select_spikes.py.
std::uint32_t Selection::hashOf(std::uint32_t id) {
  id = (id ^ (id >> 16)) * 0x85EBCA6BU;
  id = (id ^ (id >> 13)) * 0xC2B2AE35U;
  return id ^ (id >> 16);
}

}  // namespace snnjax
