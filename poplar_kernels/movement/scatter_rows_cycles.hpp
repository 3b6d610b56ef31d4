// What the codelets of scatter_rows.cpp cost a worker, in issue slots.
//
// As PopLibs counts MultiUpdate (ipu.md 3.5): 32 around the loop over ids, 5 for an id that is not the worker's, 11 for
// one that is, and 3 for each load of its row (gather_cycles.hpp).
#pragma once

#include <cstdint>

#include "gather_cycles.hpp"

namespace snnjax::cycles {

constexpr std::uint64_t kScatterPrologue = 32;
constexpr std::uint64_t kForeignId = 5;
constexpr std::uint64_t kOwnId = 11;

// `own` of `ids` ids name a row of the worker.
constexpr std::uint64_t scatterRows(std::uint64_t ids, std::uint64_t own, std::uint64_t row_bytes) {
  return kScatterPrologue + (ids - own) * kForeignId + own * (kOwnId + kMoved * rowLoads(row_bytes));
}

}  // namespace snnjax::cycles
