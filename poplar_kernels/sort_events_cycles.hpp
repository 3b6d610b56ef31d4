// What SortEvents and UnsortEvents (sort_events.cpp) cost a worker. The sort is counted as if nothing moved: the moves
// of an insertion sort cannot be told from its result, and events mostly come sorted.
#pragma once

#include <concepts>

#include "listed_rows_cycles.hpp"
#include "lists.hpp"

namespace snnjax {

template <class Source>
class SortEvents;
class UnsortEvents;

namespace cycles {

// A slot of the input: its id, range 2, loop 2; of one in range the id before it with the comparison 3, the value 2,
// and three stores, one of 16 bits. A pad: three stores and the branch.
constexpr Slots sortedEvents(Slots listed, Slots capacity, Slots pads) {
  return 44 + capacity * 5 + listed * (3 + 2 + 2 + kShortStore) + pads * (3 + kShortStore) + startsOf(listed);
}

// A zero by its store and branch; a slot: its number, range 2, address 1, load, store, loop 2.
constexpr Slots unsortedEvents(Slots capacity) { return 12 + capacity * 2 + capacity * 8; }

}  // namespace cycles

template <class Source>
std::uint64_t workerCycles(const SortEvents<Source>& vertex, unsigned worker) {
  using namespace cycles;
  Slots slots = entry(9, false);
  for (unsigned row = worker; row < vertex.rows; row += vertex.numWorkers()) {
    const unsigned listed = vertex.lists[row * vertex.stride + 1];
    slots += sortedEvents(listed, vertex.capacity, vertex.stride - kListHeader - listed);
  }
  return slots;
}

std::uint64_t workerCycles(const std::same_as<UnsortEvents> auto& vertex, unsigned worker) {
  cycles::Slots slots = cycles::entry(5, false);
  for (unsigned row = worker; row < vertex.rows; row += vertex.numWorkers()) {
    slots += cycles::unsortedEvents(vertex.capacity);
  }
  return slots;
}

}  // namespace snnjax
