// What the codelets of movement/ cost a worker, in issue slots.
#pragma once

#include "../issue_slots.hpp"

namespace snnjax::cycles {

// Fill: four 64-bit stores and the branch: 5, one by one at the end 2, and what does not fill 64 bits by elements; 16 +
// 7 around it, which is what PopLibs counts around its hardware loop of one instruction (ipu.md 3.5).
constexpr Slots fillTensor(Slots elements, unsigned bytes) {
  constexpr Slots kPrologue = 16 + 7;
  const Slots each = 8 / bytes, vectors = elements / each, rest = elements % each;
  return kPrologue + vectors / 4 * 5 + vectors % 4 * 2 + rest * (1 + store(bytes));
}

// Transpose: address, load, store of one element, the test for the end of a column and the branch: 6; elements smaller
// than a word are merged into one: 4 more. Fields and the worker's share 25, counted; the first row and column: a
// division.
constexpr Slots transpose(Slots elements, unsigned per_word) {
  constexpr Slots kPrologue = 25, kElement = 6, kMerge = 4;
  return kPrologue + kDivision + elements * (kElement + (per_word > 1 ? kMerge : 0));
}

// Gather: as PopLibs counts MultiSlice and DynamicSlice1D (ipu.md 3.5): 59 around the loop over ids, 19 for an id; and
// for each word of its row a load, a store and the branch, where PopLibs' hardware loop takes 2. An id out of range,
// which MultiSlice leaves after 8, writes zeros here: counted as if it were a row. A start is tested, added to and
// moved in besides: 6. A window: 39 around the loop, 24 a row and its words.
constexpr Slots gatherRows(Slots ids, Slots width, unsigned bytes) {
  constexpr Slots kPrologue = 59, kId = 19;
  return kPrologue + ids * (kId + moved(width, bytes, width));
}

constexpr Slots gatherRowsAt(Slots starts, Slots width, unsigned bytes) {
  constexpr Slots kMovedIn = 6;
  return gatherRows(starts, width, bytes) + starts * kMovedIn;
}

constexpr Slots sliceRows(Slots rows, Slots width, unsigned bytes) {
  constexpr Slots kPrologue = 39, kRow = 24;
  return kPrologue + rows * (kRow + moved(width, bytes, width));
}

// Scatters, of which `own` ids of `ids` name a row of the worker: as PopLibs counts MultiUpdate (ipu.md 3.5): 32 around
// the loop over ids, 5 for an id that is not the worker's, 11 for one that is, and its row.
constexpr Slots scattered(Slots ids, Slots own, Slots row) {
  constexpr Slots kPrologue = 32, kForeignId = 5, kOwnId = 11;
  return kPrologue + (ids - own) * kForeignId + own * (kOwnId + row);
}

constexpr Slots scatterRows(Slots ids, Slots own, Slots width, unsigned bytes) {
  return scattered(ids, own, moved(width, bytes, width));
}

// ScatterWith: each number takes two loads, the operation, the store, the branch: 5; halves are widened and rounded, 2
// more; what is smaller than a word is merged into one.
constexpr Slots scatterWith(Slots ids, Slots own, Slots width, unsigned bytes) {
  return scattered(ids, own, width * (4 + store(bytes) + (bytes == 2 ? 2 : 0)));
}

// SliceWindow, UpdateWindow: as PopLibs' DynamicSlice1D (ipu.md 3.5): 39 around the loop, with the limits of the window
// 4 more. Where rows do not fill whole words the window begins within one, and goes by single elements that are merged
// into them.
constexpr Slots window(Slots elements, Slots width, unsigned bytes) {
  constexpr Slots kPrologue = 39 + 4;
  return kPrologue + moved(elements, bytes, width);
}

// RowNumbers, for a window: its base and addresses 6; for each of its starts four loads, the comparisons with their
// branches 4, two sums, the product, the loop: 12; for each of its rows the load of the offset, the sum, the store, the
// branch: 4.
constexpr Slots rowNumbers(Slots windows, Slots depth, Slots rows) {
  constexpr Slots kFields = 12, kWindow = 6, kStart = 12, kRow = 4;
  return entry(kFields, false) + windows * (kWindow + depth * kStart + rows * kRow);
}

// OrderedBits: load, tests for a NaN and for 0 with their branches 4, test of the sign, the bits 2, the order, store,
// loop: 12.
constexpr Slots orderedBits(Slots elements) {
  constexpr Slots kFields = 5, kElement = 12;
  return entry(kFields, false) + elements * kElement;
}

// SortNumbers, of parts of rows; the place of each takes two divisions. A pass over a row moves each number once: tests
// of the two ends 2, loads of both numbers 2, their keys by address and load 4, comparison and branches 3, store,
// addresses, counter and branch 4: 15; equal keys ask for the next one, which is counted as half of the times: 3 for
// each further key. A run begins with its ends: 10.
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

// TakeNumbers: the place of the output 4, number, element by address 2, store, branch: 9.
constexpr Slots takeNumbers(Slots elements, unsigned bytes) {
  constexpr Slots kFields = 6, kElement = 8;
  return entry(kFields, true) + elements * (kElement + store(bytes));
}

}  // namespace snnjax::cycles
