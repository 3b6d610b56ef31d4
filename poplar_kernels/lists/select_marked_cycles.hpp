// What the codelets of select_marked.cpp cost a worker: the words that tiles offer, and the candidates they mark.
#pragma once

#include "../conventions.hpp"
#include "candidates_cycles.hpp"

namespace snnjax::cycles {

// A row of up to four pairs: their loads, the unions of all but one, the store, two pointers, the branch. Of more: each
// with its load, union and branch; a word its bounds 4, the store and its address 2; pointers and the branch 4.
constexpr Slots packedRow(Slots pairs) {
  if (pairs <= 4) return 2 * pairs - 1 + 4;
  return pairs * 3 + (pairs + 7) / 8 * 6 + 4;
}

// The first block of a share 4, so many steps to it, and how many blocks there are 8. A block: the load of its word,
// the test, pointer and branch; of several words each: the load and its address, the test, loop 3, and the block 5. A
// word that marks any neuron: which block it is 3, both halves in one 3. A candidate: leading bit, its mask, what is
// left, the loop; its id, whether it is own 3, which kind 3: 11, and the loads of its membrane.
constexpr Slots kFirstBlock = 12, kNextBlock = 3, kBlock = 4, kWords = 5, kWord = 6, kMarkedWord = 6;
constexpr Slots kMarkedCandidate = 12;

constexpr Slots blocksOfRow(Slots blocks, unsigned columns) {
  return columns <= kNeuronsOfMark ? blocks * kBlock
                                   : blocks * (kWords + (columns + kNeuronsOfMark - 1) / kNeuronsOfMark * kWord);
}

}  // namespace snnjax::cycles
