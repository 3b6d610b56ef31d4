// What the loops of listed_rows.hpp and lists.hpp cost, in issue slots. `width` is the bytes of a weight.
#pragma once

#include "../conventions.hpp"
#include "../issue_slots.hpp"

namespace snnjax::cycles {

// Columns in blocks: four pairs each and one of the pairs left over in the vector form, else single numbers.
struct Blocks {
  Slots fours, rest, ones;
  bool is_narrow;  // rows of one pair: their address needs no product

  // The cost of all blocks, of(pairs) being that of one.
  template <class Of>
  constexpr Slots sum(Of&& of) const {
    return fours * of(4) + (rest > 0 ? of(rest) : 0) + ones * of(1);
  }
  constexpr Slots count() const { return fours + (rest > 0 ? 1 : 0) + ones; }
};

constexpr Blocks blocksOf(unsigned columns) {
  if (columns % 2 != 0) return {0, 0, columns, false};
  const unsigned pairs = columns / 2;
  return {pairs / 4, pairs % 4, 0, pairs == 1};
}

// Of so many ids of a turn and `pairs` pairs of columns: load and min of an id, the row's product, a load for each pair
// with the sum of the pair before in the same bundle, the branch with the last sum. Halves need two aux instructions a
// pair. With values besides: their load, the test for 0 and its branch, products (aux). Of MadeRows no min.
constexpr Slots sumOfIds(Slots ids, Slots pairs, bool is_narrow, unsigned width, bool valued, bool are_made = false) {
  const Slots main = ids * ((are_made ? 1 : 2) + (is_narrow ? 0 : 1) + pairs + (valued ? 3 : 0)) + 1;
  const Slots aux = ids * pairs * ((width < 4 ? 2U : 1U) + (valued ? 1U : 0U));
  return most(main, aux + 2);
}

// sumListedRows without what it does with the sums: two ids a turn, or one with its value. 5 a block: pointers, zeros,
// the count and its test, and 2 for the test whether an id is left over.
constexpr Slots sumListedRows(Slots count, unsigned columns, unsigned width, bool valued, bool are_made = false) {
  const Blocks blocks = blocksOf(columns);
  return blocks.sum([&](Slots pairs) {
    const auto turn = [&](Slots ids) { return sumOfIds(ids, pairs, blocks.is_narrow, width, valued, are_made); };
    return valued ? 5 + count * turn(1) : 7 + count / 2 * turn(2) + count % 2 * turn(1);
  });
}

// forEachMark: the bit's number, the bit cleared 2, the branch.
constexpr Slots kBit = 4;

// sumMarkedRows without what it does with the sums. A block: pointers, zeros and the count 5; of a word: load, both
// bounds 4, where they cut it 3, the test, pointer and loop 3; of a row: the bit, its number, the row's product, a load
// for each pair and one sum that no load follows.
constexpr Slots sumMarkedRows(Slots words, Slots count, unsigned columns) {
  return blocksOf(columns).sum([&](Slots pairs) { return 8 + words * 8 + count * (kBit + 2 + pairs + 1); });
}

// dotListedRows. Rows of 1, 2, 3, 4 or 6 pairs: id 2, address 1 but for one pair, loads; products and sums follow the
// loads by one bundle (aux, with the widening of halves), the last product, the sum of both lanes, store and branch are
// on their own. Up to 3 pairs two rows a turn do not wait for each other: the first product and the last sum of lanes
// find no bundle. Other rows: a loop over pairs inside, two loads and the branch for each, 6 around it; odd ones number
// by number.
constexpr Slots dotListedRows(Slots count, unsigned columns, unsigned width) {
  const bool is_short = columns == 2 || columns == 4 || columns == 6 || columns == 8 || columns == 12;
  if (is_short) {
    const Slots pairs = columns / 2, address = pairs > 1 ? 1 : 0;
    const Slots aux = pairs * (width < 4 ? 3 : 2) - 1;
    const Slots one = 2 + address + most(pairs, aux) + 4, two = most(2 * (3 + address + pairs) + 1, 2 * (aux + 1)) + 2;
    return 6 + pairs + (pairs <= 3 ? count / 2 * two + count % 2 * one : count * one);
  }
  const Slots steps = columns % 2 == 0 ? columns / 2 : columns;
  return 5 + count * (9 + steps * (width < 4 ? 4 : 3));
}

// addToListedRows: load and min of the id, address 1 but for one pair, a load and a store for each pair with sums
// between them, one sum that waits for the last load, the branch; with values their load and the products (aux).
constexpr Slots addOfId(Slots pairs, bool is_narrow, bool valued) {
  return 2 + (is_narrow ? 0 : 1) + 2 * pairs + 1 + 1 + (valued ? 2 : 0);
}

constexpr Slots addToListedRows(Slots count, unsigned columns, bool valued) {
  const Blocks blocks = blocksOf(columns);
  return blocks.sum([&](Slots pairs) { return 5 + pairs + count * addOfId(pairs, blocks.is_narrow, valued); });
}

// numBelow: halve, add, load, compare, branch, two updates, branch back: 7 for each halving of the count.
constexpr Slots numBelow(Slots count) {
  Slots slots = 4;
  for (; count > 0; count /= 2) slots += 7;
  return slots;
}

// entriesWithin: two searches, the second in what is left; taken as long as the first.
constexpr Slots entriesWithin(Slots count) { return 2 * numBelow(count) + 4; }

// writeStarts: an id's load, comparison and branch; a share's bound, its store and the loop.
constexpr Slots startsOf(Slots spikes) { return 4 + spikes * 3 + (kShares - 1) * (3 + kShortStore); }

// The header of a record: two loads, two min, their addresses.
constexpr Slots kRecordHeader = 6;

}  // namespace snnjax::cycles
