// What the codelets of list_rows.cpp cost a worker: its rows with the ids that are really listed.
#pragma once

#include "../lists/listed_rows_cycles.hpp"
#include "../lists/lists.hpp"

namespace snnjax {

template <class W, class Id, bool valued>
class RowsCurrent;
template <class W, class Id>
class RowsDots;
template <class Id, bool valued>
class RowsDense;
template <class Id, bool valued>
class RowsGradient;

namespace cycles {

// A row of RowsCurrent: pointers to it and its record move on 2, the number of its spikes, the ids' address, the loop
// over rows 2; where its values begin 2.
constexpr Slots kCurrentRow = 6, kCurrentValues = 2;
// An entry of value 0, once for each block of columns: its load, the id's, the test, the branch, the loop.
constexpr Slots kZeroEntry = 5;

// Sums of `used` entries beside `zeros` entries of value 0, and a store for each number or pair.
constexpr Slots currentRow(Slots used, Slots zeros, unsigned neurons, unsigned width, bool valued) {
  return kCurrentRow + (valued ? kCurrentValues : 0) + sumListedRows(used, neurons, width, valued, true) +
         zeros * kZeroEntry * blocksOf(neurons, valued).count() + numbersOf(neurons);
}

// Of a row's entries, those that contribute.
template <bool valued, class V>
Slots usedEntries([[maybe_unused]] const V& vertex, [[maybe_unused]] unsigned row, unsigned spikes) {
  if constexpr (valued) {
    Slots used = 0;
    for (unsigned k = 0; k < spikes; ++k) used += vertex.values[row * vertex.capacity + k] != 0.0f ? 1U : 0U;
    return used;
  } else {
    return spikes;
  }
}

// RowsDense: an entry, its id, two for the test, a load, a sum, a store and the branch; its value.
constexpr Slots denseEntry(bool valued) { return 7 + (valued ? 1 : 0); }

// The entries of a worker: two loads, their bounds, their address.
constexpr Slots kShareOfRow = 6;

// RowsGradient: a row: pointers to its record, gradients and values, where its own entries begin and end 4, their test
// 2, the loop.
constexpr Slots gradientRow(bool valued) { return 2 + (valued ? 1 : 0) + 4 + 2 + 1; }

}  // namespace cycles

template <class W, class Id, bool valued>
std::uint64_t workerCycles(const RowsCurrent<W, Id, valued>& vertex, unsigned worker) {
  using namespace cycles;
  Slots slots = entry(valued ? 8 : 6, false) + 6;  // its first row, and how far the next one lies
  for (unsigned row = worker; row < vertex.rows; row += vertex.numWorkers()) {
    const unsigned spikes = vertex.lists[row * vertex.stride + kKept];
    const Slots used = usedEntries<valued>(vertex, row, spikes);
    slots += currentRow(used, spikes - used, vertex.neurons, sizeof(W), valued);
  }
  return slots;
}

template <class W, class Id>
std::uint64_t workerCycles(const RowsDots<W, Id>& vertex, unsigned worker) {
  using namespace cycles;
  Slots slots = entry(9, false);
  for (unsigned row = worker; row < vertex.rows; row += vertex.numWorkers()) {
    const unsigned listed = List<Id>{&vertex.lists[row * vertex.stride], vertex.capacity}.listed();
    slots += 8 + kRecordHeader + dotListedRows(listed, vertex.neurons, sizeof(W));
  }
  return slots;
}

template <class Id, bool valued>
std::uint64_t workerCycles(const RowsDense<Id, valued>& vertex, unsigned worker) {
  using namespace cycles;
  const Range own = neuronsOfWorker(vertex.num_inputs, worker);
  Slots slots = entry(valued ? 7 : 6, false);
  for (unsigned row = 0; row < vertex.rows; ++row) {
    const List<Id> list = {&vertex.lists[row * vertex.stride], vertex.capacity};
    const Range found = list.spikesOfWorker(worker);
    slots += 8 + kShareOfRow + kToRows + filled(own.last - own.first, 4, vertex.num_inputs) +
             (larger(found.last, found.first) - found.first) * denseEntry(valued);
  }
  return slots;
}

template <class Id, bool valued>
std::uint64_t workerCycles(const RowsGradient<Id, valued>& vertex, unsigned worker) {
  using namespace cycles;
  Slots slots = entry(valued ? 9 : 8, false);
  for (unsigned row = 0; row < vertex.rows; ++row) {
    const List<Id> list = {&vertex.lists[row * vertex.stride], vertex.capacity};
    const Range found = list.spikesOfWorker(worker);
    slots += gradientRow(valued);
    if (found.first < found.last) slots += addToListedRows(found.last - found.first, vertex.neurons, valued);
  }
  return slots;
}

}  // namespace snnjax
