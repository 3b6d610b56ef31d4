// What the codelets of gather.cpp and those of scatter_add.cpp that only copy cost a worker, in issue slots.
//
// As PopLibs counts MultiSlice and DynamicSlice1D (ipu.md 3.5): 59 around the loop over ids, 19 for an id, and 2 for
// each vector of its row (a load and a store of 64 bits, or of less where the row's start is not at 8 bytes; rows of
// that kind take twice as many vectors). An id out of range, which MultiSlice leaves after 8, writes zeros here: the
// same. A window: 39 around the loop, 24 and two for each vector a row.
#pragma once

#include <cstdint>

namespace snnjax::cycles {

// Loads of a row: of 64 bits where every row starts at 8 bytes, else of 32, else of single elements at two a word.
constexpr std::uint64_t rowLoads(std::uint64_t row_bytes) {
  if (row_bytes % 8 == 0) return row_bytes / 8;
  if (row_bytes % 4 == 0) return row_bytes / 4;
  return (row_bytes + 1) / 2;
}

constexpr std::uint64_t gatherRows(std::uint64_t ids, std::uint64_t row_bytes) {
  constexpr std::uint64_t kPrologue = 59, kId = 19, kVector = 2;
  return kPrologue + ids * (kId + kVector * rowLoads(row_bytes));
}

constexpr std::uint64_t sliceRows(std::uint64_t rows, std::uint64_t row_bytes) {
  constexpr std::uint64_t kPrologue = 39, kRow = 24, kVector = 2;
  return kPrologue + rows * (kRow + kVector * rowLoads(row_bytes));
}

}  // namespace snnjax::cycles
