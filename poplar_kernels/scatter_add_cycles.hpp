// What the codelets of scatter_add.cpp cost a worker, in issue slots.
//
// As PopLibs counts MultiUpdate and MultiUpdateAdd (ipu.md 3.5): 32 around the loop over ids, 5 for an id that is not
// the worker's, 11 for one that is. Of its row each pair of floats takes two loads, the product beside one of them, the
// sum, the store, the branch: 5; a pair of halves is widened and rounded besides: 7. Odd rows go number by number at
// the same cost each, and halves are stored by merging them into a word: 4 for 1; so do integers, with a product of
// their own. New values alone: 3 for each load of the row (gather_cycles.hpp). A window: 27 around the loop and 5 for a
// row, whether in it or not, and 3 for each load.
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
  const bool in_pairs = !integers && width % 2 == 0;
  const std::uint64_t merging = element_bytes == 2 && !in_pairs ? 3 : 0;
  const std::uint64_t number = (element_bytes == 2 ? 7 : 5) + merging;
  const std::uint64_t row = (in_pairs ? width / 2 : width) * number;
  return kScatterPrologue + (ids - own) * kForeignId + own * (kOwnId + row);
}

constexpr std::uint64_t scatterRows(std::uint64_t ids, std::uint64_t own, std::uint64_t row_bytes) {
  return kScatterPrologue + (ids - own) * kForeignId + own * (kOwnId + kMoved * rowLoads(row_bytes));
}

constexpr std::uint64_t updateRows(std::uint64_t rows, std::uint64_t row_bytes) {
  constexpr std::uint64_t kPrologue = 27;
  return kPrologue + rows * (kForeignId + kMoved * rowLoads(row_bytes));
}

}  // namespace snnjax::cycles
