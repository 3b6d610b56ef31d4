// What the codelets of list_rows.cpp cost a worker: its rows with the ids that are really listed.
#pragma once

#include "../lists/listed_rows_cycles.hpp"
#include "../lists/lists.hpp"

namespace snnjax::cycles {

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

}  // namespace snnjax::cycles
