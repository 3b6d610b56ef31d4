// What SortEvents and UnsortEvents (sort_events.cpp) cost a worker.
#pragma once

#include <algorithm>
#include <concepts>

#include "listed_rows_cycles.hpp"
#include "lists.hpp"

namespace snnjax {

template <class Source>
class SortEvents;
class UnsortEvents;

namespace cycles {

// A slot of the input: its id, range 2, loop 2; of one in range the entry before it with the comparison 5, the value 2,
// and three stores, one of 16 bits. An entry that moves: the comparison 5, two loads, three stores and the loop.
constexpr Slots sortedEvents(Slots kept, Slots listed, Slots capacity, Slots moves) {
  return 44 + capacity * 5 + listed * (5 + 2 + 2 + kShortStore) + moves * (5 + 2 + 2 + kShortStore + 2) +
         startsOf(kept);
}

// How many entries a later one passed on its way: of a larger id, from a smaller slot.
constexpr Slots movesOf(const unsigned* slots, unsigned listed) {
  Slots moves = 0;
  for (unsigned k = 1, most = slots[0]; k < listed; ++k) {
    if (slots[k] < most)
      moves += static_cast<Slots>(std::count_if(slots, slots + k, [&](unsigned of) { return of > slots[k]; }));
    most = larger(most, slots[k]);
  }
  return moves;
}

// A zero by its store and branch; an entry: its slot, range 2, address 1, load, store, loop 2.
constexpr Slots unsortedEvents(Slots listed, Slots capacity) { return 12 + capacity * 2 + kRecordHeader + listed * 8; }

}  // namespace cycles

template <class Source>
std::uint64_t workerCycles(const SortEvents<Source>& vertex, unsigned worker) {
  using namespace cycles;
  Slots slots = entry(9, false);
  for (unsigned row = worker; row < vertex.rows; row += vertex.numWorkers()) {
    const List<unsigned short> list = {&vertex.lists[row * vertex.stride], vertex.capacity};
    const Slots moves = movesOf(&vertex.slots[row * vertex.capacity], list.listed());
    slots += sortedEvents(list.spikes(), list.listed(), vertex.capacity, moves);
  }
  return slots;
}

std::uint64_t workerCycles(const std::same_as<UnsortEvents> auto& vertex, unsigned worker) {
  cycles::Slots slots = cycles::entry(7, false);
  for (unsigned row = worker; row < vertex.rows; row += vertex.numWorkers()) {
    const List<unsigned short> list = {&vertex.lists[row * vertex.stride], vertex.capacity};
    slots += cycles::unsortedEvents(list.listed(), vertex.capacity);
  }
  return slots;
}

}  // namespace snnjax
