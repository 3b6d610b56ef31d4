// What ScatterWith (scatter_with.cpp) costs a worker, in issue slots.
//
// Around the ids as ScatterRows (scatter_rows_cycles.hpp). Of a row each number takes two loads, the operation, the
// store, the branch: 5; halves are widened and rounded, 2 more; what is smaller than a word is merged into one.
#pragma once

#include "../issue_slots.hpp"
#include "scatter_rows_cycles.hpp"

namespace snnjax::cycles {

constexpr Slots scatterWith(Slots ids, Slots own, Slots width, unsigned bytes) {
  const Slots number = 4 + store(bytes) + (bytes == 2 ? 2 : 0);
  return kScatterPrologue + (ids - own) * kForeignId + own * (kOwnId + width * number);
}

}  // namespace snnjax::cycles
