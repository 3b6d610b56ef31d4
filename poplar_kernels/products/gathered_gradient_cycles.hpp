// What the codelets of gathered_gradient.cpp cost a worker: the spikes that there really are.
#pragma once

#include <bit>
#include <concepts>

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

namespace cycles {

// forEachMark: the bit's number, the bit cleared 2, the branch.
constexpr Slots kBit = 4;

inline Slots bitsOfMask(unsigned mask) { return static_cast<Slots>(std::popcount(mask)); }

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

// An input: addresses 6, the header, the test behind, the loop; a word: load, test, its first row, loop 5; a row: the
// test for room 2, a sum, the store of 16 bits, the count; of a mask a load, a store and a branch for each word.
std::uint64_t workerCycles(const std::same_as<ListRows> auto& vertex, unsigned worker) {
  using namespace cycles;
  Slots slots = entry(4, false);
  for (unsigned input = worker; input < vertex.inputs; input += vertex.numWorkers()) {
    const Slots count = vertex.records[input * (1 + vertex.words)], words = vertex.words;
    slots += 10 + 5 * words + count * (kBit + 4 + kShortStore) + (count > 2 * words ? 3 * words : 0);
  }
  return slots;
}

// An input: addresses 6, the header, the test 2, the loop; the choice and a store for each pair, a load and a sum where
// it is added. Of a mask each word is listed first: load, loop 4, and 16 bits stored for each row; its sums.
std::uint64_t workerCycles(const std::same_as<GatherGradient> auto& vertex, unsigned worker) {
  using namespace cycles;
  const bool adds = vertex.always_adds || *vertex.level > 0;
  const auto sums = [&](Slots count) {
    return sumListedRows(count, vertex.neurons, 4, false) + (adds ? 3 : 1) * numbersOf(vertex.neurons) + 2;
  };
  Slots slots = entry(9, false);
  for (unsigned input = worker; input < vertex.inputs; input += vertex.numWorkers()) {
    const unsigned* const record = &vertex.records[input * (1 + vertex.words)];
    slots += 10 + (record[0] <= 2 * vertex.words ? sums(record[0]) : 0);
    for (unsigned w = 0; record[0] > 2 * vertex.words && w < vertex.words; ++w) {
      const Slots count = bitsOfMask(record[1 + w]);
      slots += 5 + count * (kBit + 2 + kShortStore) + sums(count);
    }
  }
  return slots;
}

}  // namespace snnjax
