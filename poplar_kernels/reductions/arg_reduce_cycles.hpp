// What ArgReduce (arg_reduce.cpp) costs a worker, in issue slots.
//
// For each output its place with a division, the first number, both stores and the loop: 20 and the division. For each
// further number the load with its address 2, the test for a NaN beside the comparison 3, its result to the integer
// side 1, the branches 2: 8; a half is widened by one more.
#pragma once

#include "../issue_slots.hpp"

namespace snnjax::cycles {

constexpr Slots argReduce(Slots outputs, Slots rows, unsigned bytes) {
  constexpr Slots kFields = 9, kOutput = 20, kNumber = 8;
  return entry(kFields, false) +
         outputs * (kOutput + kDivision + store(bytes) + rows * (kNumber + (bytes == 2 ? 1 : 0)));
}

}  // namespace snnjax::cycles
