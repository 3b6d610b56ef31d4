// What Cast (cast.cpp) costs a worker, in issue slots.
//
// Float to half and back: four elements a turn, two loads and two stores of pairs (64 or 32 bits), a conversion beside
// each of two of them, the branch: 5. PopLibs' Cast1D takes 19 around its loop (ipu.md 3.5). Up to three that are left
// over, and all others, go one by one: load, conversion (an integer to a float and back 1; to and from a Boolean a
// comparison; limits 2), store, branch: 5 in the mean; elements smaller than a word are stored by reading, merging and
// writing it: 4 more.
#pragma once

#include <cstdint>

namespace snnjax::cycles {

constexpr std::uint64_t kCastPrologue = 19;

constexpr std::uint64_t cast(std::uint64_t elements, bool real_to_real, unsigned per_word) {
  constexpr std::uint64_t kVector = 4, kVectorLoop = 5, kElement = 5, kMerge = 4;
  const std::uint64_t turns = real_to_real ? elements / kVector : 0, rest = elements - turns * kVector;
  return kCastPrologue + turns * kVectorLoop + rest * (kElement + (per_word > 1 ? kMerge : 0));
}

}  // namespace snnjax::cycles
