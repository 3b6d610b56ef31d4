// What the codelets of reductions/ cost a worker, in issue slots.
#pragma once

#include "../issue_slots.hpp"

namespace snnjax::cycles {

enum class Element { Float, Half, Integer };

constexpr Slots reduceRow(Element element) { return element == Element::Float ? 3 : element == Element::Half ? 5 : 4; }

// Reduce: `outputs` numbers, each of `rows` numbers that lie `inner` apart. Fields, the worker's share with its first
// row and column: 35, counted. For each output, or pair of neighbours (2 floats; halves are widened, two at a time):
// address, neutral element, store, loop: 10, as PopLibs' "16 + 6" per reduction less its decoding of regions (ipu.md
// 3.5). For each row: the load, the operation, the branch: 3, plus 2 to widen two halves. Where rows are single numbers
// side by side the worker walks along them two at a time, at the same cost for each pair, and joins the two lanes: 2.
// An odd number of columns, or of numbers side by side, goes one by one at the same cost each; so do integers and
// Booleans: load, operation, address, branch.
constexpr Slots reduce(Slots outputs, Slots rows, Slots inner, Element element) {
  constexpr Slots kPrologue = 35, kOutput = 10;
  const bool is_row = inner == 1, in_pairs = element != Element::Integer && (is_row ? rows : inner) % 2 == 0;
  const Slots numbers = !is_row && in_pairs ? (outputs + 1) / 2 : outputs;
  const Slots steps = is_row && in_pairs ? rows / 2 : rows;
  return kPrologue + numbers * (kOutput + steps * reduceRow(element) + (is_row ? 2 : 0));
}

// SumRows. A column, a pair of neighbours or four of these: pointer, tests and the loop 6, the rows left over and the
// way there 4, a zero and a store for each; a row: loads, the last of which moves on by the row's length, with the sums
// before in their bundles; of two rows, of one column or pair of eight the branch.
constexpr Slots sumColumns(Slots rows, Slots at_once) {
  const Slots turn = at_once == 1 ? 8 : 2;
  return 10 + 2 * at_once + rows * at_once + rows / turn;
}

constexpr Slots sumRows(Slots rows, Slots columns, bool in_pairs) {
  if (!in_pairs) return columns * sumColumns(rows, 1);
  return columns / 8 * sumColumns(rows, 4) + columns % 8 / 2 * sumColumns(rows, 1);
}

// ArgReduce. For each output its place with a division, the first number, both stores and the loop: 20 and the
// division. For each further number the load with its address 2, the test for a NaN beside the comparison 3, its result
// to the integer side 1, the branches 2: 8; a half is widened by one more.
constexpr Slots argReduce(Slots outputs, Slots rows, unsigned bytes) {
  constexpr Slots kFields = 9, kOutput = 20, kNumber = 8;
  return entry(kFields, false) +
         outputs * (kOutput + kDivision + store(bytes) + rows * (kNumber + (bytes == 2 ? 1 : 0)));
}

// Cumulative. For each row its first result, addresses and the loop: 12. For each number the load, the operation (of a
// maximum with its test for a NaN 2), the store, addresses, the branch: 6; halves are widened, rounded and merged into
// a word.
constexpr Slots cumulative(Slots rows, Slots length, unsigned bytes) {
  constexpr Slots kFields = 7, kRow = 12, kNumber = 5;
  return entry(kFields, true) + rows * (kRow + length * (kNumber + store(bytes) + (bytes == 2 ? 2 : 0)));
}

}  // namespace snnjax::cycles
