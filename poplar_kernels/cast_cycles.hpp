// What Cast (cast.cpp) costs a worker, in issue slots.
//
// Float to half and back: four elements a turn, PopLibs' Cast1D in its vector loop (ipu.md 3.5: 19 + n / vector in
// all): two loads or two stores of 64 bits beside one of the other width, the conversions beside them: 3 and the
// branch. All others go one by one: load, conversion (an integer to a float and back 1; to and from a Boolean a
// comparison; limits 2), store, branch: 5 in the mean; elements smaller than a word are stored by reading, merging and
// writing it.
#pragma once

#include <cstdint>

namespace snnjax::cycles {

constexpr std::uint64_t kCastPrologue = 19;

constexpr std::uint64_t cast(std::uint64_t elements, bool real_to_real, unsigned per_word) {
  constexpr std::uint64_t kVector = 4, kVectorLoop = 4, kElement = 5, kMerge = 4;
  if (real_to_real) return kCastPrologue + (elements + kVector - 1) / kVector * kVectorLoop;
  return kCastPrologue + elements * (kElement + (per_word > 1 ? kMerge : 0));
}

}  // namespace snnjax::cycles
