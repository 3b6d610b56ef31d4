// What the codelets of products/ cost a worker, in issue slots, but for the vendor's (matrix_unit_cycles.hpp).
#pragma once

#include "../lists/cycles.hpp"

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

// RowsDense: an entry, its id, two for the test, a load, a sum, a store and the branch; its value.
constexpr Slots denseEntry(bool valued) { return 7 + (valued ? 1 : 0); }

// The entries of a worker: two loads, their bounds, their address.
constexpr Slots kShareOfRow = 6;

// RowsGradient: a row: pointers to its record, gradients and values, where its own entries begin and end 4, their test
// 2, the loop.
constexpr Slots gradientRow(bool valued) { return 2 + (valued ? 1 : 0) + 4 + 2 + 1; }

// One entry of a scattered list: id, range 2, value, the block by a sum and a product with the inverse 6, the address
// 4, the store, the branch.
constexpr Slots kScatterEntry = 16;

// One of a mask: id, range 3, the block 6, its column 2, the bits, their address 2, load, or, store, branch; of several
// words a block besides the word and its column 4, and its place 2.
constexpr Slots maskEntry(unsigned columns) { return columns <= kNeuronsOfMark ? 19 : 25; }

// forEachMark: its number, the bit cleared 2, the branch; addresses of what it names 5.
constexpr Slots kMark = 4 + 5;

// The dot product, through the parts of a row: two pointers and the branch for each; its pairs: loads, and a branch
// where there are more than two; the last product, both lanes, the store. Where the neuron is kept besides, of a pair
// the load and store of its sum, and a pointer unless sums lie as far apart as weights. Products and sums find bundles,
// halves are widened beside their products.
constexpr Slots readoutDot(Slots parts, unsigned columns, unsigned width, bool is_kept) {
  const Slots pairs = numbersOf(columns), of_pair = (width < 4 ? 3 : 2) + (is_kept ? 2 : 0) + (pairs > 2 ? 1 : 0);
  return parts * (3 + (is_kept && width < 4 ? 1 : 0) + pairs * of_pair) + 4;
}

// Sums cleared by four pairs a turn, then number by number: where they are 6.
constexpr Slots clearedSums(Slots rows, unsigned columns) {
  const Slots numbers = rows * columns, in_turns = numbers / 8 * 8;
  return 6 + in_turns / 8 * 5 + (numbers - in_turns) * 2;
}

// A row of the batch: pointers, loop.
constexpr Slots kMatmulRow = 10;

// Storing a pair of sums takes 2: halves are one word, which needs no merging.
constexpr Slots matmulRow(Slots used, Slots skipped, unsigned outputs, unsigned width) {
  return kMatmulRow + sumListedRows(used, outputs, width, true) +
         skipped * kZeroEntry * blocksOf(outputs, true).count() + outputs;
}

// An id that another worker takes: load, subtract, compare, branch, loop. One's own: the same, and the update.
constexpr Slots kForeign = 5;

}  // namespace snnjax::cycles
