// What SumRows (sum_rows.cpp) costs a worker.
#pragma once

#include "../issue_slots.hpp"

namespace snnjax::cycles {

// A column, a pair of neighbours or four of these: pointer, tests and the loop 6, the rows left over and the way there
// 4, a zero and a store for each; a row: loads, the last of which moves on by the row's length, with the sums before in
// their bundles; of two rows, of one column or pair of eight the branch.
constexpr Slots sumColumns(Slots rows, Slots at_once) {
  const Slots turn = at_once == 1 ? 8 : 2;
  return 10 + 2 * at_once + rows * at_once + rows / turn;
}

constexpr Slots sumRows(Slots rows, Slots columns, bool in_pairs) {
  if (!in_pairs) return columns * sumColumns(rows, 1);
  return columns / 8 * sumColumns(rows, 4) + columns % 8 / 2 * sumColumns(rows, 1);
}

}  // namespace snnjax::cycles
