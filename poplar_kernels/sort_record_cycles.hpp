// What SortRecord (sort_record.cpp) costs a worker, counted as if nothing moved: the moves of an insertion sort cannot
// be told from its result, and lists mostly come sorted.
#pragma once

#include "issue_slots.hpp"
#include "lists.hpp"

namespace snnjax {

template <class Id>
class SortRecord;

namespace cycles {

// An id: load, range 2, the id before it with the comparison 3, the store, loop 2.
constexpr Slots sortedRecord(Slots listed, Slots pads, unsigned id_bytes) {
  return 40 + listed * (8 + store(id_bytes)) + pads * (1 + store(id_bytes));
}

}  // namespace cycles

template <class Id>
std::uint64_t workerCycles(const SortRecord<Id>& vertex, unsigned worker) {
  using namespace cycles;
  Slots slots = entry(5, false);
  for (unsigned b = worker; b < vertex.rows; b += vertex.numWorkers()) {
    const unsigned listed = List<Id>{&vertex.list[b * vertex.stride], vertex.capacity}.listed();
    slots += sortedRecord(listed, vertex.stride - kListHeader - listed, sizeof(Id));
  }
  return slots;
}

}  // namespace snnjax
