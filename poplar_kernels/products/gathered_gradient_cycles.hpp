// What the codelets of gathered_gradient.cpp cost a worker: the spikes that there really are.
#pragma once

#include <bit>
#include <concepts>

#include "../lists/listed_rows.hpp"
#include "../lists/listed_rows_cycles.hpp"
#include "../lists/lists.hpp"

namespace snnjax {

template <class Id>
class MaskSpikes;
template <class T>
class AnyWord;
class TurnMasks;
class ListRows;
class GatherGradient;
class SumShared;
class AddShared;

namespace cycles {

inline Slots bitsOfMask(unsigned mask) { return static_cast<Slots>(std::popcount(mask)); }

inline MarkedRows markedRows(const Marks& marks) {
  MarkedRows rows;
  marks.forEachWord([&](unsigned, unsigned mask) {
    ++rows.words;
    rows.all += bitsOfMask(mask);
    rows.in_whole_words += mask == ~0U ? Marks::kBits : 0;
  });
  return rows;
}

}  // namespace cycles

// Zeros, a word each; a row: its record, the search, an id that is too large 5; an id: its load, range 3, how often it
// came before 3, the comparison 2, its word and bit 4, load, or, store, the loop. Whether any comes again: two loads,
// the comparison, or and branch for each.
template <class Id>
std::uint64_t workerCycles(const MaskSpikes<Id>& vertex, unsigned worker) {
  using namespace cycles;
  const Range words = quickShareOf(vertex.words, worker), own = vertex.inputsOf(words);
  const bool is_last = worker + 1 == vertex.numWorkers();
  Slots slots = entry(9, false) + 6 + Slots{words.last - words.first} * vertex.rows * 2;
  for (unsigned b = 0; b < vertex.rows; ++b) {
    const List<Id> list = {&vertex.list[b * vertex.stride], vertex.capacity};
    const Range found = entriesWithin(list.ids(), list.spikes(), own);
    slots += 8 + kRecordHeader + numBelow(list.spikes()) + 5 + Slots{found.last - found.first} * 17 +
             (is_last ? 6 + Slots{list.spikes()} * 5 : 0);
  }
  return slots;
}

// A load, or and branch for each; a byte is stored by its word.
template <class T>
std::uint64_t workerCycles(const AnyWord<T>& vertex, unsigned) {
  return cycles::entry(3, false) + 3 * cycles::Slots{vertex.count} + 2 + cycles::store(sizeof(T));
}

// Own inputs 8, zeros; a row: load, mask, test, its bit and the branch; an input: address, load, or, store.
std::uint64_t workerCycles(const std::same_as<TurnMasks> auto& vertex, unsigned worker) {
  using namespace cycles;
  const Range own = vertex.ownInputs(worker);
  Slots slots = entry(3, false) + 8 + 2 * Slots{own.last - own.first} + 5 * Slots{vertex.rows};
  for (unsigned i = own.first; i < own.last; ++i) slots += bitsOfMask(vertex.turned[i]) * (kBit + 4);
  return slots;
}

// An input: addresses 6, the header, the loop; a word: load, test, its first row, loop 5; a row: the test for room 2, a
// sum, the store of 16 bits, the count. Where there is no room for all, as many as there is and then the bits: a load,
// the count 2, a store and a branch for each word.
std::uint64_t workerCycles(const std::same_as<ListRows> auto& vertex, unsigned worker) {
  using namespace cycles;
  Slots slots = entry(5, false);
  const Slots words = vertex.words, room = vertex.room;
  for (unsigned input = worker; input < vertex.inputs; input += vertex.numWorkers()) {
    const Slots count = vertex.records[input * (1 + room)], listed = count < 2 * room ? count : 2 * room;
    slots += 9 + 5 * words + listed * (kBit + 4 + kShortStore) + (count > listed ? 5 * words : 0);
  }
  return slots;
}

// The first input and the way to the next 8. An input: both pointers move on 2, the header, the test 2, the loop; the
// choice and a store for each pair, a load and a sum where it is added. Where it is long, two tests more; where it is
// shared, its place 4, a load, a store, a pointer and a branch for each word, its number, and that there is one 4.
std::uint64_t workerCycles(const std::same_as<GatherGradient> auto& vertex, unsigned worker) {
  using namespace cycles;
  const bool adds = vertex.always_adds || *vertex.level > 0;
  const Slots stores = (adds ? 3 : 1) * numbersOf(vertex.neurons) + 2;
  Slots slots = entry(14, false) + 4 + 8, shared = 0;
  for (unsigned input = worker; input < vertex.inputs; input += vertex.numWorkers()) {
    const Slots count = vertex.records[input * (1 + vertex.room)], words = vertex.words, listed = 2 * vertex.room;
    const bool is_shared = count > listed && count > vertex.longest && shared < kSharedInputs;
    slots += 6 + stores + (count > listed ? 4 : 0);
    if (count <= listed) {
      slots += sumListedRows(count, vertex.neurons, 4, false, true);
    } else if (is_shared) {
      slots += sumMarkedRows({}, vertex.neurons) + 12 + 4 * words;
      ++shared;
    } else {
      const Marks marks = {&vertex.records[input * (1 + vertex.room) + 1], 1, 0, vertex.rows};
      slots += sumMarkedRows(markedRows(marks), vertex.neurons);
    }
  }
  return slots;
}

// Another worker of a tile: 3, where its inputs are 4, their number, the loop; an input: addresses 8, the loop, a store
// for each pair.
std::uint64_t workerCycles(const std::same_as<SumShared> auto& vertex, unsigned worker) {
  using namespace cycles;
  Slots slots = entry(9, false);
  unsigned of = worker;
  for (unsigned tile = 0; tile < vertex.tiles; ++tile, of = of + 1 < vertex.numWorkers() ? of + 1 : 0) {
    slots += 9;
    for (unsigned k = 0; k < vertex.count(tile, of); ++k) {
      slots += 9 + sumMarkedRows(markedRows(vertex.marks(tile, of * kSharedInputs + k)), vertex.neurons) +
               numbersOf(vertex.neurons) + 2;
    }
  }
  return slots;
}

// An input: addresses 6, its number, the loop; a pair: its load, store and loop, and of a group the load with the sum
// before, the pointer, the loop.
std::uint64_t workerCycles(const std::same_as<AddShared> auto& vertex, unsigned worker) {
  using namespace cycles;
  const Slots inputs = vertex.shared[worker * (1 + kSharedInputs)];
  return entry(6, false) + 6 + inputs * (8 + numbersOf(vertex.neurons) * (6 + 3 * Slots{vertex.groups}));
}

}  // namespace snnjax
