// What Cumulative (cumulative.cpp) costs a worker, in issue slots.
//
// For each row its first result, addresses and the loop: 12. For each number the load, the operation (of a maximum with
// its test for a NaN 2), the store, addresses, the branch: 6; halves are widened, rounded and merged into a word.
#pragma once

#include "../issue_slots.hpp"

namespace snnjax::cycles {

constexpr Slots cumulative(Slots rows, Slots length, unsigned bytes) {
  constexpr Slots kFields = 7, kRow = 12, kNumber = 5;
  return entry(kFields, true) + rows * (kRow + length * (kNumber + store(bytes) + (bytes == 2 ? 2 : 0)));
}

}  // namespace snnjax::cycles
