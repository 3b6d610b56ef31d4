// What the codelets of sort_numbers.cpp cost a worker, in issue slots.
//
// OrderedBits: load, tests for a NaN and for 0 with their branches 4, test of the sign, the bits 2, the order, store,
// loop: 12. SortNumbers: a pass over a row moves each number once: tests of the two ends 2, loads of both numbers 2,
// their keys by address and load 4, comparison and branches 3, store, addresses, counter and branch 4: 15; equal keys
// ask for the next one, which is counted as half of the times: 3 for each further key. A run begins with its ends: 10.
// TakeNumbers: the place of the output 4, number, element by address 2, store, branch: 9.
#pragma once

#include "../issue_slots.hpp"

namespace snnjax::cycles {

constexpr Slots orderedBits(Slots elements) {
  constexpr Slots kFields = 5, kElement = 12;
  return entry(kFields, false) + elements * kElement;
}

// Of parts of rows; the place of each takes two divisions.
constexpr Slots sortNumbers(Slots parts, Slots length, Slots sorted, Slots keys) {
  constexpr Slots kFields = 8, kPart = 12 + 2 * kDivision, kNumber = 15, kFurtherKey = 3, kRun = 10, kCopy = 3,
                  kCount = 2;
  Slots part = kPart + (sorted <= 1 ? length * kCount : 0);
  bool odd = false;
  for (Slots run = most(sorted, 1); run < length; run *= 2) {
    part += length * (kNumber + (keys > 1 ? (keys - 1) * kFurtherKey : 0)) + (length + 2 * run - 1) / (2 * run) * kRun;
    odd = !odd;
  }
  return entry(kFields, false) + parts * (part + (odd ? length * kCopy : 0));
}

constexpr Slots takeNumbers(Slots elements, unsigned bytes) {
  constexpr Slots kFields = 6, kElement = 8;
  return entry(kFields, true) + elements * (kElement + store(bytes));
}

}  // namespace snnjax::cycles
