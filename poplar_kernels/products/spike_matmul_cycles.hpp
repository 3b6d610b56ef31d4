// What the codelets of spike_matmul.cpp cost a worker: entries of value 0 and ids out of range are counted as such.
#pragma once

#include "../lists/listed_rows_cycles.hpp"
#include "../lists/lists.hpp"

namespace snnjax::cycles {

// A row of the batch: pointers, loop.
constexpr Slots kMatmulRow = 10;
// Skipping an entry of value 0, once for each block of columns: its load, the id's, the test, the branch, the loop.
constexpr Slots kSkipped = 5;
// Storing a sum.
constexpr Slots matmulStore(unsigned bytes) { return 1 + store(bytes); }

constexpr Slots matmulRow(Slots used, Slots skipped, unsigned outputs, unsigned width, Slots each_store) {
  return kMatmulRow + sumListedRows(used, outputs, width, true) + skipped * kSkipped * blocksOf(outputs, true).count() +
         numbersOf(outputs) * each_store;
}

// An id that another worker takes: load, subtract, compare, branch, loop. One's own: the same, and the update.
constexpr Slots kForeign = 5;

}  // namespace snnjax::cycles
