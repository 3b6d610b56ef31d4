// What the codelets of gather.cpp and those of scatter_rows.cpp that only copy cost a worker, in issue slots.
//
// As PopLibs counts MultiSlice and DynamicSlice1D (ipu.md 3.5): 59 around the loop over ids, 19 for an id; and for each
// vector of its row a load, a store and the branch: 3, where PopLibs' hardware loop takes 2. Vectors have 64 bits, or
// less where the row's start is not at 8 bytes. An id out of range, which MultiSlice leaves after 8, writes zeros here:
// the same. A start is tested, added to and moved in besides: 6. A window: 39 around the loop, 24 a row and 3 for each
// vector.
#pragma once

#include <cstdint>

namespace snnjax::cycles {

constexpr std::uint64_t kMoved = 3;  // load, store, branch

// Loads of a row: of 64 bits where every row starts at 8 bytes, else of 32, else of single elements at two a word.
constexpr std::uint64_t rowLoads(std::uint64_t row_bytes) {
  if (row_bytes % 8 == 0) return row_bytes / 8;
  if (row_bytes % 4 == 0) return row_bytes / 4;
  return (row_bytes + 1) / 2;
}

constexpr std::uint64_t gatherRows(std::uint64_t ids, std::uint64_t row_bytes) {
  constexpr std::uint64_t kPrologue = 59, kId = 19;
  return kPrologue + ids * (kId + kMoved * rowLoads(row_bytes));
}

constexpr std::uint64_t gatherRowsAt(std::uint64_t starts, std::uint64_t row_bytes) {
  constexpr std::uint64_t kMovedIn = 6;
  return gatherRows(starts, row_bytes) + starts * kMovedIn;
}

constexpr std::uint64_t sliceRows(std::uint64_t rows, std::uint64_t row_bytes) {
  constexpr std::uint64_t kPrologue = 39, kRow = 24;
  return kPrologue + rows * (kRow + kMoved * rowLoads(row_bytes));
}

}  // namespace snnjax::cycles
