// What the codelets of sort.cpp cost a worker, in issue slots.
//
// A pass over a row moves each element once. For one element, counted in the loop of `merge`: tests of the two ends 2,
// load of the key that was taken last 1, comparison with its test for NaN 3, its result to the integer side 1, branch
// 1, address and store 2, counter and branch 2: 12; a value goes along for 2 more. A run begins with its ends: 10.
// There are as many passes as doublings from the sorted runs to the row, and one copy at 3 more where their number is
// odd.
#pragma once

#include <cstdint>

namespace snnjax::cycles {

constexpr std::uint64_t sortRows(std::uint64_t rows, std::uint64_t length, std::uint64_t sorted) {
  constexpr std::uint64_t kPrologue = 40, kRow = 12, kKey = 12, kValue = 2, kRun = 10, kCopy = 3;
  std::uint64_t row = kRow;
  bool odd = false;
  for (std::uint64_t run = sorted > 0 ? sorted : 1; run < length; run *= 2) {
    row += length * (kKey + kValue) + (length + 2 * run - 1) / (2 * run) * kRun;
    odd = !odd;
  }
  return kPrologue + rows * (row + (odd ? length * (kCopy + kValue) : 0));
}

}  // namespace snnjax::cycles
