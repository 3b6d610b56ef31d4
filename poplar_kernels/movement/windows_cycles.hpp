// What the codelets of windows.cpp cost a worker, in issue slots.
//
// As PopLibs' DynamicSlice1D (ipu.md 3.5): 39 around the loop, with the limits of the window 4 more. Then a load, a
// store and the branch for each 64 bits: 3. Where rows do not fill whole vectors the window begins within one, and goes
// by single words, or elements that are merged into them.
#pragma once

#include "../issue_slots.hpp"

namespace snnjax::cycles {

constexpr Slots window(Slots elements, Slots width, unsigned bytes, bool updates) {
  constexpr Slots kPrologue = 39 + 4, kMove = 3;
  const Slots row = width * bytes;
  if (row % 8 == 0) return kPrologue + (elements * bytes + 7) / 8 * kMove;
  if (row % 4 == 0) return kPrologue + (elements * bytes + 3) / 4 * kMove;
  return kPrologue + elements * (kMove + (updates ? store(bytes) : 1));
}

}  // namespace snnjax::cycles
