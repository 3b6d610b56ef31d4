// What the codelets of scatter_list.cpp cost a worker: the listed ids that fall to it.
#pragma once

#include "../lists/listed_rows_cycles.hpp"
#include "../lists/lists.hpp"

namespace snnjax {

template <class Id>
class ScatterList;
template <class Id>
class MaskLists;

namespace cycles {

// One entry of a scattered list: id, range 2, value, the block by a product with the inverse 5 and its correction 5,
// the address 4, the store, the branch.
constexpr Slots kScatterEntry = 20;

// One of a mask: id, range 3, the block 10, column and word 5, the bits 2, their address 4, load, or, store, branch.
constexpr Slots kMaskEntry = 29;

constexpr Slots scatterGroup(Slots count, Slots own) { return entriesWithin(count) + own * kScatterEntry; }

}  // namespace cycles

template <class Id>
std::uint64_t workerCycles(const ScatterList<Id>& vertex, unsigned worker) {
  using namespace cycles;
  const unsigned columns = vertex.columns, block_size = vertex.rows * columns;
  const Range blocks = shareOf(vertex.num_neurons / columns, worker, block_size % 2 == 0 ? 1 : 2);
  const Range own = {blocks.first * columns, blocks.last * columns};
  Slots slots = entry(8, true) + kDivision + kInverse + fill(Slots{blocks.last - blocks.first} * block_size, 4);
  for (unsigned b = 0; b < vertex.rows; ++b) {
    const List<Id> list = {&vertex.list[b * vertex.stride], vertex.capacity};
    const unsigned spikes = list.spikes(), near = list.listed() - spikes;
    const Range first = entriesWithin(list.ids(), spikes, own), second = entriesWithin(list.ids() + spikes, near, own);
    slots += 10 + kRecordHeader + scatterGroup(spikes, first.last - first.first) +
             scatterGroup(near, second.last - second.first);
  }
  return slots;
}

// Zeros, four words a turn and a word each; a row: its record, both groups with their searches, an id that is too
// large.
template <class Id>
std::uint64_t workerCycles(const MaskLists<Id>& vertex, unsigned worker) {
  using namespace cycles;
  const Range blocks = quickShareOf(vertex.blocks, worker);
  const Range own = vertex.neuronsOf(blocks);
  const Slots words = Slots{blocks.last - blocks.first} * markWords(vertex.columns) * vertex.rows;
  Slots slots = entry(8, false) + kInverse + 6 + words / 4 * 5 + words % 4 * 2;
  for (unsigned b = 0; b < vertex.rows; ++b) {
    const List<Id> list = {&vertex.list[b * vertex.stride], vertex.capacity};
    const unsigned spikes = list.spikes(), near = list.listed() - spikes;
    const Range first = entriesWithin(list.ids(), spikes, own), second = entriesWithin(list.ids() + spikes, near, own);
    slots += 10 + kRecordHeader + numBelow(spikes) + numBelow(near) + 2 * 6 +
             (first.last - first.first + second.last - second.first) * kMaskEntry;
  }
  return slots;
}

}  // namespace snnjax
