// What CheckEvents, SortEvents and UnsortEvents (sort_events.cpp) cost a worker.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "listed_rows_cycles.hpp"
#include "lists.hpp"

namespace snnjax::cycles {

// A share of a row: its pointers 4, the entry before it 2, its flag 3; a slot's load, comparison and branch, loop; its
// value's load, range 2, comparison and branch.
constexpr Slots checkedEvents(Slots slots, bool valued) { return 9 + slots * (4 + (valued ? 5 : 0)); }
// Whether all shares of a row are sorted: a load of each beside the sum of the one before, and the test.
constexpr Slots kSortedRow = 2 + kShares + 2;
// What is copied: of two entries two loads, the test for the second one, both in one 2, the store, the loop; with
// values three words each and a loop of their own.
constexpr Slots copiedEvents(Slots words, bool valued) { return 14 + words * (7 + (valued ? 8 : 0)); }
// A worker's word of the header: around it 8, the searches for the starts in it with their bounds.
constexpr Slots headerWord(unsigned share, Slots listed) {
  const unsigned last = 2 * share + 1, starts = last < kStarts       ? 0
                                                : last < kListHeader ? smaller(last - kStarts + 1, 2)
                                                                     : 0;
  return 8 + starts * (2 + numBelow(listed));
}
// The header of a row that one worker sorts: starts, each with its share's bound and the loop 3, for all ids a load,
// comparison and branch; of two entries both in one 2, and the store.
constexpr Slots eventsHeader(Slots kept) { return 8 + kept * 3 + (kShares - 1) * 3 + kListHeader / 2 * 3; }

// A slot of the input: its id, range 2, loop 2; of one in range the entry before it with the comparison 3, the store of
// 16 bits; with values 2 more, the value 2, two stores. An entry that moves: the same, a load for each store, the loop.
constexpr Slots sortedEvents(Slots listed, Slots capacity, Slots moves, bool valued) {
  const Slots entry = 3 + kShortStore + (valued ? 2 + 2 + 2 : 0);
  return 20 + capacity * 5 + listed * entry + moves * (entry + 2 + (valued ? 1 : 0));
}

// How many entries the ones after them pass on their way: of a larger id, or value 0, from a smaller slot.
template <class V>
Slots movesOf(const V& vertex, unsigned row, bool valued) {
  Slots moves = 0;
  std::vector<std::pair<bool, unsigned>> before;
  for (unsigned k = row * vertex.capacity; k < (row + 1) * vertex.capacity; ++k) {
    const auto id = static_cast<unsigned>(vertex.ids[k]);
    if (id >= vertex.num_inputs) continue;
    bool is_zero = false;
    if constexpr (requires { vertex.values[k]; }) is_zero = valued && vertex.values[k] == 0.0f;
    moves +=
        static_cast<Slots>(std::ranges::count_if(before, [&](const auto& of) { return of > std::pair(is_zero, id); }));
    before.emplace_back(is_zero, id);
  }
  return moves;
}

// A zero by its store and branch; an entry: its slot, range 2, address 1, load, store, loop 2.
constexpr Slots unsortedEvents(Slots listed, Slots capacity) { return 12 + capacity * 2 + kRecordHeader + listed * 8; }

}  // namespace snnjax::cycles
