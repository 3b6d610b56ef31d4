// What the codelets of gather.cpp and those of scatter_rows.cpp that only copy cost a worker, in issue slots.
//
// As PopLibs counts MultiSlice and DynamicSlice1D (ipu.md 3.5): 59 around the loop over ids, 19 for an id; and for each
// word of its row a load, a store and the branch, where PopLibs' hardware loop takes 2. An id out of range, which
// MultiSlice leaves after 8, writes zeros here: counted as if it were a row. A start is tested, added to and moved in
// besides: 6. A window: 39 around the loop, 24 a row and its words.
#pragma once

#include "../issue_slots.hpp"

namespace snnjax::cycles {

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

}  // namespace snnjax::cycles
