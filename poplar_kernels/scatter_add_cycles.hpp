// What the codelets of scatter_add.cpp cost a worker, in issue slots.
//
// As PopLibs counts MultiUpdate and MultiUpdateAdd (ipu.md 3.5): 32 around the loop over ids, 5 for an id that is not
// the worker's, 11 for one that is. Of its row each vector (2 floats, 4 halves) takes two loads, a product and sum and
// a store; halves are widened and rounded again (two pairs, 4 more). Integers go one by one, with a product of their
// own. New values alone: 2 for each load of the row (gather_cycles.hpp). A window: 27 around the loop and 5 for a row,
// whether in it or not, and 2 for each load.
#pragma once

#include <cstdint>

#include "gather_cycles.hpp"

namespace snnjax::cycles {

constexpr std::uint64_t kScatterPrologue = 32;
constexpr std::uint64_t kForeignId = 5;
constexpr std::uint64_t kOwnId = 11;

// `own` of `ids` ids name a row of the worker, of `width` elements.
constexpr std::uint64_t scatterAdd(std::uint64_t ids, std::uint64_t own, std::uint64_t width,
                                   std::uint64_t element_bytes, bool integers) {
  const std::uint64_t per_vector = integers ? 1 : 8 / element_bytes;
  const std::uint64_t vector = integers ? 5 : element_bytes == 2 ? 8 : 4;
  const std::uint64_t row = (width + per_vector - 1) / per_vector * vector;
  return kScatterPrologue + (ids - own) * kForeignId + own * (kOwnId + row);
}

constexpr std::uint64_t scatterRows(std::uint64_t ids, std::uint64_t own, std::uint64_t row_bytes) {
  return kScatterPrologue + (ids - own) * kForeignId + own * (kOwnId + 2 * rowLoads(row_bytes));
}

constexpr std::uint64_t updateRows(std::uint64_t rows, std::uint64_t row_bytes) {
  constexpr std::uint64_t kPrologue = 27;
  return kPrologue + rows * (kForeignId + 2 * rowLoads(row_bytes));
}

}  // namespace snnjax::cycles
