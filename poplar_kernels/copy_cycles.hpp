// What the codelets of copy.cpp cost a worker, in issue slots.
//
// Fill: one 64-bit store a vector in a hardware loop of one instruction, as PopLibs' "16 + n/2 + 7" for n floats
// (ipu.md 3.5). CopyElements: a loop of one bundle that loads one vector and stores the one before, possible because
// the two lie in different memory elements; filling and emptying it takes 2 more.
// Transpose: address, load, and store of one element, the test for the end of a column and the branch: 6; elements
// smaller than a word are stored by reading, merging and writing it: 4 more for each.
// Iota: the number, its conversion or sum, the store, the branch: 4; merging into a word as above.
#pragma once

#include <cstdint>

namespace snnjax::cycles {

constexpr std::uint64_t kFillPrologue = 16 + 7;
constexpr std::uint64_t kCopyPrologue = 25;  // fields, the worker's share, first load and last store: counted
constexpr std::uint64_t kMerge = 4;

constexpr std::uint64_t merging(std::uint64_t elements, unsigned per_word) {
  return per_word > 1 ? elements * kMerge : 0;
}

constexpr std::uint64_t fill(std::uint64_t vectors) { return kFillPrologue + vectors; }

constexpr std::uint64_t copyElements(std::uint64_t vectors) { return kCopyPrologue + vectors + 2; }

constexpr std::uint64_t transpose(std::uint64_t elements, unsigned per_word) {
  constexpr std::uint64_t kElement = 6, kDivision = 40;  // the first row and column: a division in software, assumed
  return kCopyPrologue + kDivision + elements * kElement + merging(elements, per_word);
}

constexpr std::uint64_t iota(std::uint64_t elements, unsigned per_word) {
  constexpr std::uint64_t kElement = 4;
  return kCopyPrologue + elements * kElement + merging(elements, per_word);
}

}  // namespace snnjax::cycles
