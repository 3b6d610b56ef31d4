// What the codelets of windows.cpp cost a worker, in issue slots.
//
// As PopLibs' DynamicSlice1D (ipu.md 3.5): 39 around the loop, with the limits of the window 4 more. Where rows do not
// fill whole words the window begins within one, and goes by single elements that are merged into them.
#pragma once

#include "../issue_slots.hpp"

namespace snnjax::cycles {

constexpr Slots window(Slots elements, Slots width, unsigned bytes) {
  constexpr Slots kPrologue = 39 + 4;
  return kPrologue + moved(elements, bytes, width);
}

}  // namespace snnjax::cycles
