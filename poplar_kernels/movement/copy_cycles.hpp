// What the codelets of copy.cpp cost a worker, in issue slots.
//
// Fill: four 64-bit stores and the branch: 5, one by one at the end 2, and what does not fill 64 bits by elements; 16 +
// 7 around it, which is what PopLibs counts around its hardware loop of one instruction (ipu.md 3.5). Transpose:
// address, load, and store of one element, the test for the end of a column and the branch: 6; elements smaller than a
// word are stored by reading, merging and writing it: 4 more for each. The first row and column: a division.
#pragma once

#include "../issue_slots.hpp"

namespace snnjax::cycles {

constexpr std::uint64_t kFillPrologue = 16 + 7;
constexpr std::uint64_t kCopyPrologue = 25;  // fields, the worker's share: counted
constexpr std::uint64_t kMerge = 4;

constexpr std::uint64_t merging(std::uint64_t elements, unsigned per_word) {
  return per_word > 1 ? elements * kMerge : 0;
}

constexpr Slots fillTensor(Slots elements, unsigned bytes) {
  const Slots each = 8 / bytes, vectors = elements / each, rest = elements % each;
  return kFillPrologue + vectors / 4 * 5 + vectors % 4 * 2 + rest * (1 + store(bytes));
}

constexpr std::uint64_t transpose(std::uint64_t elements, unsigned per_word) {
  constexpr std::uint64_t kElement = 6;
  return kCopyPrologue + kDivision + elements * kElement + merging(elements, per_word);
}

}  // namespace snnjax::cycles
