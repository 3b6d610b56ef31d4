// What the codelets of select_marked.cpp cost a worker: the words that tiles offer, and the candidates they mark.
#pragma once

#include <bit>
#include <concepts>

#include "../conventions.hpp"
#include "candidates_cycles.hpp"
#include "lists.hpp"

namespace snnjax {

class PackMarks;
template <class Id>
class SelectMarked;

namespace cycles {

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

}  // namespace cycles

std::uint64_t workerCycles(const std::same_as<PackMarks> auto& vertex, unsigned worker) {
  using namespace cycles;
  const unsigned rows = vertex.rows > worker ? (vertex.rows - worker - 1) / vertex.numWorkers() + 1 : 0;
  return entry(5, false) + 6 + rows * packedRow((vertex.neurons + 1) / 2);
}

template <class Id>
std::uint64_t workerCycles(const SelectMarked<Id>& vertex, unsigned worker) {
  using namespace cycles;
  const Range own = neuronsOfWorker(vertex.neurons, worker);
  const unsigned before = worker * vertex.share_columns, columns = vertex.columns;
  const Slots blocks = vertex.ownBlocks(worker * vertex.share_blocks + before / columns, before % columns);
  Slots slots = entry(10, false);
  for (unsigned row = 0; row < vertex.rows; ++row) {
    Slots found = 0, words = 0, passed = 0;
    vertex.forEachWord(row, worker, [&](unsigned word, unsigned first, const float*, Range) {
      ++words;
      const unsigned marked = (word | word << kNeuronsOfMark) & kMarksOfSpikes;
      passed += static_cast<Slots>(std::popcount(marked));
      for (unsigned i = 0; i < kNeuronsOfMark; ++i) {
        const bool is_own = first + i - own.first < own.last - own.first;
        found += is_own && (marked & kFirstMark >> i) != 0 ? 1 : 0;
      }
    });
    slots += kFirstBlock + before / columns * kNextBlock + blocksOfRow(blocks, columns) + words * kMarkedWord +
             passed * kMarkedCandidate + partOf(found, sizeof(Id));
  }
  return slots;
}

}  // namespace snnjax
