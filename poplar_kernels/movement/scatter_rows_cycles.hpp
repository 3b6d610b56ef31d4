// What the codelets of scatter_rows.cpp cost a worker, in issue slots.
//
// As PopLibs counts MultiUpdate (ipu.md 3.5): 32 around the loop over ids, 5 for an id that is not the worker's, 11 for
// one that is, and its row, word by word (`moved`).
#pragma once

#include "../issue_slots.hpp"

namespace snnjax::cycles {

constexpr Slots kScatterPrologue = 32;
constexpr Slots kForeignId = 5;
constexpr Slots kOwnId = 11;

// `own` of `ids` ids name a row of the worker.
constexpr Slots scatterRows(Slots ids, Slots own, Slots width, unsigned bytes) {
  return kScatterPrologue + (ids - own) * kForeignId + own * (kOwnId + moved(width, bytes, width));
}

}  // namespace snnjax::cycles
