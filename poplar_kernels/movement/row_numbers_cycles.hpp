// What RowNumbers (row_numbers.cpp) costs a worker, in issue slots.
//
// For a window: its base and addresses 6; for each of its starts four loads, the comparisons with their branches 4,
// two sums, the product, the loop: 12; for each of its rows the load of the offset, the sum, the store, the branch: 4.
#pragma once

#include "../issue_slots.hpp"

namespace snnjax::cycles {

constexpr Slots rowNumbers(Slots windows, Slots depth, Slots rows) {
  constexpr Slots kFields = 12, kWindow = 6, kStart = 12, kRow = 4;
  return entry(kFields, false) + windows * (kWindow + depth * kStart + rows * kRow);
}

}  // namespace snnjax::cycles
