// What the codelets of lists/ cost, in issue slots: those that read lists, and the loops of listed_rows.hpp and
// lists.hpp; those that make them. `width` is the bytes of a weight.
#pragma once

#include "../conventions.hpp"
#include "../issue_slots.hpp"

namespace snnjax::cycles {

// Columns, an even number, in blocks of `most` pairs and one of the pairs left over.
struct Blocks {
  Slots most, whole, rest;
  bool is_narrow;  // rows of one pair: their address needs no product

  // The cost of all blocks, of(pairs) being that of one.
  constexpr Slots sum(auto&& of) const { return whole * of(most) + (rest > 0 ? of(rest) : 0); }
  constexpr Slots count() const { return whole + (rest > 0 ? 1 : 0); }
};

constexpr Blocks blocksOf(unsigned columns, bool valued) {
  const Slots most = pairsAtOnce(valued), pairs = columns / 2;
  return {most, pairs / most, pairs % most, pairs == 1};
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
  const Blocks blocks = blocksOf(columns, valued);
  return blocks.sum([&](Slots pairs) {
    const auto turn = [&](Slots ids) { return sumOfIds(ids, pairs, blocks.is_narrow, width, valued, are_made); };
    return valued ? 5 + count * turn(1) : 7 + count / 2 * turn(2) + count % 2 * turn(1);
  });
}

// forEachMark: the bit's number, the bit cleared 2, the branch.
constexpr Slots kBit = 4;

// sumMarkedRows without what it does with the sums, of so many rows, some in words of nothing but bits. A block:
// pointers, zeros and the count 5; of a word: load, both bounds 4, where they cut it 3, two tests 3, pointer and loop
// 2; of a row: the bit, its number, the row's product, a load for each pair and one sum that no load follows; in such
// words a pointer, the loads and the branch beside the last sum.
struct MarkedRows {
  Slots words = 0, all = 0, in_whole_words = 0;
};
constexpr Slots sumMarkedRows(MarkedRows rows, unsigned columns) {
  return blocksOf(columns, false).sum([&](Slots pairs) {
    return 8 + rows.words * 10 + (rows.all - rows.in_whole_words) * (kBit + 2 + pairs + 1) +
           rows.in_whole_words * (pairs + 2);
  });
}

// dotListedRows. Rows of up to three pairs: id 2, address 1 but for one pair, loads; products and sums follow the loads
// by one bundle (aux, with the widening of halves), the last product, the sum of both lanes, store and branch are on
// their own. Two rows a turn do not wait for each other: the first product and the last sum of lanes find no bundle.
constexpr Slots dotShortRows(Slots count, Slots pairs, unsigned width) {
  const Slots address = pairs > 1 ? 1 : 0, aux = pairs * (width < 4 ? 3 : 2) - 1, one = 2 + address + pairs;
  return 6 + pairs + count / 2 * (most(2 * one + 1 + 2, 2 * (aux + 1)) + 2) +
         count % 2 * (2 + address + most(pairs, aux) + 4);
}

// One or two longer rows: ids 2 and an address each, the vector's pointer 2; of the first pair its loads, a product
// that no load follows, halves widened. A block: loads and the branch, or products and sums of pairs, which begin after
// two loads. The sums of both lanes, one of which lies beside a store; the loop.
constexpr Slots dotRows(Slots rows, unsigned columns, unsigned width) {
  const Slots aux = width < 4 ? 3 : 2;
  return 3 * rows + 2 + (rows + 2 + rows * (aux - 2)) + (rows + 1) + 1 +
         blocksOf(columns - 2, false).sum([&](Slots pairs) {
           return 2 + most(pairs * (rows + 1) + 1, pairs * rows * aux);
         });
}

constexpr Slots dotListedRows(Slots count, unsigned columns, unsigned width) {
  if (columns <= 6) return dotShortRows(count, columns / 2, width);
  return 5 + count / 2 * dotRows(2, columns, width) + count % 2 * dotRows(1, columns, width);
}

// addToListedRows: load and min of the id, address 1 but for one pair, a load and a store for each pair with sums
// between them, one sum that waits for the last load, the branch; with values their load and the products (aux).
constexpr Slots addToListedRows(Slots count, unsigned columns, bool valued) {
  const Blocks blocks = blocksOf(columns, valued);
  const Slots of_id = 2 + (blocks.is_narrow ? 0 : 1) + 1 + 1 + (valued ? 2 : 0);
  return blocks.sum([&](Slots pairs) { return 5 + pairs + count * (of_id + 2 * pairs); });
}

// numBelow: halve, add, load, compare, branch, two updates, branch back: 7 for each halving of the count.
constexpr Slots numBelow(Slots count) {
  Slots slots = 4;
  for (; count > 0; count /= 2) slots += 7;
  return slots;
}

// The header of a record: two loads, two min, their addresses; how many entries are listed alone.
constexpr Slots kRecordHeader = 6, kListedHeader = 3;

// A row: pointers 6, three entries of its header and the starts of shares, the loop over rows 3. A pair of inputs, or
// one of an odd number: load, comparison with the masks' way to an integer register 2, branch, loop. One that is not 0:
// test and branch 2, the store of its id and of its value, two counters, the masks once more. writeStarts: an id's
// load, comparison and branch; a share's bound, its store and the loop.
constexpr Slots listedRow(Slots num_inputs, Slots used, unsigned id_bytes) {
  const Slots starts = 4 + used * 3 + (kShares - 1) * (3 + kShortStore);
  return 9 + 3 * store(id_bytes) + starts + numbersOf(static_cast<unsigned>(num_inputs)) * 5 +
         used * (6 + store(id_bytes));
}

// The part of a worker, without the search for its candidates: pointers, counts; a candidate: its count, id, its store,
// that of the membrane and the slot 2.
constexpr Slots partOf(Slots found, unsigned id_bytes) {
  return 16 + 2 * store(id_bytes) + found * (4 + store(id_bytes));
}

// Two neighbours of which none is a candidate: loads of the membranes and of the least thresholds 2, the comparison,
// its two lanes in one, the result into a main register, the branch, the loop's branch: 7. Where one is, each of both
// by itself: loads of its membrane and threshold 2, the comparison, its result into a main register, the branch: 5. A
// single neuron, where an odd number of neurons lets no pair begin at 64 bits: the same and its loop, 6. A candidate
// besides: its threshold, the comparison, its result into a main register, the branch.
constexpr Slots kPair = 7, kNearPair = 10, kNeuron = 6, kWhichKind = 4;

// What one pass over a worker's neurons finds.
struct Walk {
  Slots pairs, near_pairs, singles;
};

constexpr Slots walkOf(Walk walk) { return walk.pairs * kPair + walk.near_pairs * kNearPair + walk.singles * kNeuron; }

// A row of one word: the loads of its pairs, the unions of all but one, the store, two pointers, the branch. Of more:
// two pairs with their loads, unions and branch 5; a word its bounds 4, the store and its address 2; pointers and the
// branch 4.
constexpr Slots kMarksOfTwo = 5;
constexpr Slots packedRow(Slots pairs) {
  if (pairs <= kNeuronsOfMark / 2) return 2 * pairs - 1 + 4;
  return (pairs + 1) / 2 * kMarksOfTwo + (pairs + 7) / 8 * 6 + 4;
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

// CutCandidates: the candidates of a row, and where there are too many, the passes that the search for the last of them
// takes. One at the bound of a cut: two products and five other steps of the hash, its comparison with the branch, the
// count 3.
constexpr Slots kHashed = 12;
// A part: pointers moved on 2, two loads of its counts with their bounds 4, their difference, the test, the loop 2.
// A candidate of it that is gathered: load, store, branch; its extremes: the same. One that is compared alone: load,
// comparison, its result, branch, loop.
constexpr Slots kPart = 10, kGathered = 3, kCompared = 5;
// Four neighbours that are compared with a bound: two loads, the branch; two comparisons, masks and sums, of which
// three find a bundle. Around such a pass: the next bound 6, the tests of what it gave 6, a pair that is left over 4,
// sums 2.
constexpr Slots kFourAbove = 7, kPass = 18;
// The next one beyond a bound: of four neighbours two loads, the branch; two comparisons, choices of three instructions
// and minima, of which two find a bundle. Around it: the bound 4, both lanes 5, pointers and the loop 4.
constexpr Slots kFourBeyond = 11, kWalk = 13;
// Of both kinds: what stays 5; own part, tests, the count and its store 10. The first worker: both cuts 4, their
// addresses 4, spikes and dropped ones 5, whether these add to others.
constexpr Slots kKinds = 5 + 2 * 10, kCuts = 14;
// The search for the cut of `candidates`. Gathered ones are stored first, and the search then does not touch the parts.
struct ListSearch {
  Slots candidates, counts, walks, tie_passes, ties;
  bool gathered;
};

constexpr Slots searchLists(ListSearch search) {
  const Slots parts = kShares * kPart, count = search.candidates / 4 * kFourAbove;
  const Slots walk =
      kWalk + (search.gathered ? search.candidates / 4 * kFourBeyond : parts + search.candidates * kCompared);
  const Slots tie_pass = kPass + parts + search.candidates * kCompared + search.ties * kHashed;
  return parts + search.candidates * kGathered + search.counts * (kPass + (search.gathered ? 0 : parts) + count) +
         search.walks * walk + search.tie_passes * tie_pass;
}

// JoinCandidates. A run: its count, the sum, pointer and loop; four sums 2 each. One that is copied: its part, cut and
// bounds 16, the one after it 8. A candidate of it: load of its membrane, comparison, its result, branch; whether
// it is the last 2; id 1; of two in a word the slot's test, both in one, store and loop 6. Pads: a word its store and
// branch.
constexpr Slots kRunOfList = 4, kSums = 8, kCopiedRun = 24, kOfRun = 10, kPads = 14;

constexpr Slots joinRow(Slots own, Slots pads) {
  return 2 * kShares * kRunOfList + kSums + 2 * kCopiedRun + own * kOfRun + kPads + pads * 2;
}
// The first worker's header: its address 4, the number of spikes, of a start the count and the sum; two entries of 16
// bits are put into a word, 2, and stored.
constexpr Slots header(unsigned id_bytes) {
  return 5 + (kShares - 1) * 2 + (id_bytes < 4 ? kListHeader / 2 * 3 : kListHeader);
}

// surrogateDerivative, for a neuron or a pair of neighbours: the choice (a table of branches, 4) and the aux
// instructions; scale, absolute value and the like take 1 each.
constexpr Slots surrogate(unsigned char kind) {
  constexpr Slots kChoice = 4;
  switch (kind) {
    case Superspike: return kChoice + 4 + kInverse;
    case Arctan: return kChoice + 3 + kInverse;
    case Triangle: return kChoice + 4;
    case Gaussian: return kChoice + 3 + kExponential;
    case Sigmoid: return kChoice + 5 + 2 * (kExponential + kInverse + 1);
    case Boxcar: return kChoice + 3;
    default: return kChoice + 1;
  }
}

}  // namespace snnjax::cycles
