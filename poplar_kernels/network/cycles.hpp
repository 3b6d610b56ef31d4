// What the codelets of network/ cost a worker, in issue slots.
#pragma once

#include "../lists/cycles.hpp"
#include "neuron_rows.hpp"

namespace snnjax::cycles {

// resetMembrane: the choice 2, the comparison and its mask 2, product and difference 2.
constexpr Slots reset(unsigned char kind) { return kind == None ? 2 : 6; }

// throughReset: the same, negation and product; attached, the products and the surrogate's slope besides.
constexpr Slots throughReset(unsigned char kind, bool detach, unsigned char surrogate_kind) {
  if (kind == None) return 2;
  return 8 + (detach ? 0 : 5 + surrogate(surrogate_kind));
}

// A step outside of a block: load, compare, return.
constexpr Slots kIdle = kCall + 4;
constexpr Slots kCounted = 2;  // a worker's own count of the steps: sum and store
// NeuronRun for a pair. Before its steps: loads of v and five constants, with their addresses 6; the bits
// of its marks 4; whether it fires 2; pointers to three rows 6. Counts are loaded and stored.
constexpr Slots kRun = 6 + 6 + 4 + 2 + 6, kCountsOfRun = 2;
// A step. Seven pairs of registers hold four constants, the membrane and two numbers on their way; the second
// threshold, the bits, ones and the counts are loaded again. Main: the current and these 6, stores of the membrane
// twice, counts and marks, four pointers, the branch: 15. Aux: sums with bias and of both products, which are two; the
// comparison, its mask, the reset and the count 5; marks: comparison, three masks and their union, both lanes 5: 14, of
// which two find no bundle. Without a reset one finds none, and two fall away. Without counts their load, sum and store
// fall away.
constexpr Slots advance(unsigned char reset_kind, bool counted) {
  return (reset_kind == None ? 16 : 17) - (counted ? 0 : 2);
}
// Two of them share pointers and the branch: 25 main and 28 aux instructions, as two steps depend less on each other
// all in bundles but for the first load and the last store; without a reset 25 and 24, without counts 4 and 2 fewer.
constexpr Slots advanceTwo(unsigned char reset_kind, bool counted) {
  return (reset_kind == None ? 26 : 30) - (counted ? 0 : 2);
}
// The only step of a run: nothing is loaded again, no pointer moves, and half of the aux instructions wait for one
// another.
constexpr Slots kAdvanceOnce = 12;

// What a second state takes besides: loads of five constants, its store and pointer; the sums of its three own terms
// and of the current's (the products find bundles beside the loads), its product and sum in the membrane wait for each
// other: 6; whether it raises thresholds 2. If so, a load, a product and two sums.
constexpr Slots advanceSecond(bool raises) { return 5 + 2 + 6 + 2 + (raises ? 4 : 0); }
// Before its steps: its row, the load, what it adds to the threshold.
constexpr Slots kRunSecond = 5;
constexpr Slots kFreezeSecond = 2;  // its row past the end

// Steps of a block that a sequence has 4, two loops 4, whether a step is left over 2.
constexpr Slots kRunNumber = kRun + 10;
// A step past the end: stores of the membrane twice and of no marks, their pointers, the branch.
constexpr Slots kFrozenStep = 7;
// LeakyScan: pointers 6, how far they move in one to four steps 6, loads of v and three constants, the steps and loops
// 10. Four steps: a sum, two products and a sum each (aux), beside loads, stores, two pointers and the branch but for
// the first load and the last store. A step left over: a load, sum, two products and a sum, one of them beside the load
// and two beside pointers; the store, the branch: 6. Past the end 3.
constexpr Slots kReadoutNumber = 26, kReadoutSteps = 18, kReadoutStep = 6, kReadoutFrozen = 3;

// A pair in all steps of a block, backward: pointers to its rows 9, the loops 3. A step: its length's comparison 2,
// the current's load, the row's pointers 3, the branch.
constexpr Slots kScanNumber = 12, kScanStep = 7;

// What forEachOwnPair deals out to a worker: of(b, j) for each pair.
Slots ownPairs(const auto& vertex, unsigned worker, auto&& of) {
  Slots slots = 4 * vertex.batch;
  forEachOwnPair(vertex.batch, vertex.neurons, worker, [&](unsigned b, unsigned j) { slots += of(b, j); });
  return slots;
}

// The steps of a sample in a block.
Slots stepsOf(const auto& vertex, unsigned b) {
  return stepsInside(vertex.lengths[b], *vertex.block * vertex.num_steps, vertex.num_steps);
}

// A pair in a step: its run, the sum with the current, the choice of the first step 2. What is sent: two comparisons
// and three masks 5, its store and pointer 2.
constexpr Slots kRecurrentNumber = kRun + 1 + 2, kSentNumber = 7;
// The lists of a sample: how far it is to the next three 3, whether any are left over 2. A list: its first row, the
// branch; one or four of them share the pointer and the loop.
constexpr Slots kLists = 5, kOneList = 4, kFourLists = 10;
// A row of the weights: where it begins, its pair with the sum of the one before, the branch unless it ends the list. A
// list of its own: the same without a pair, pointers 2, the loop.
constexpr Slots kSummedRow = 3, kSummedList = 5;

// KeptSpikes. A spike that is offered: its key, the count, whether a slot is left 2; that takes one: two stores, the
// address; that finds none: the test for the first one, two comparisons with their branches. A search for the last one:
// around it 4, and for each further spike its key, two comparisons with their branches, the loop.
constexpr Slots kOfferedSpike = 4, kPlacedSpike = 3, kComparedSpike = 5, kSearchedList = 4, kSearchedSpike = 6;
// Selecting among lists: where the slots begin 4, how far it is to the next three lists 3, the loops 3, the end. A row:
// the load of the next one, the branch.
constexpr Slots kSelect = 11, kSelectedRow = 2;
// ListBlock. A sample: pointers 8, the loop 3, the end of the list. A word of marks (kMarksOfTwo) its bounds 4, its
// store with the address 2, its load, the mask, the branch, the loop. A spike: its bit with the branch 4, its row 2,
// its membrane, a sum, the key 3.
constexpr Slots kBlockRow = 12, kFiredWord = 10, kFiredSpike = 11;

// ListSpikes: of two pairs two loads, of which the second one takes no mask along, their lanes in one and on the way to
// a main register 3, branch, loop; of one left over a load and a mask fewer. Where one fired: two loads and branches
// for each pair, the loop. A spike: its store, row 2, its store, the count.
constexpr Slots kFiredPairs = 7, kFiredPair = 5, kOfferedPair = 5, kListedSpike = 5;
// A count of a list with its loop. A spike that is copied: two loads and stores, the branch.
constexpr Slots kCountOfList = 3, kCopiedSpike = 5;
// A part that is merged: its pointer 2, its count, its end 2, the loop; a row of it: load, store and branch, of ranked
// ones two tests.
constexpr Slots kMergedPart = 6, kMergedRow = 3, kTestsOfRanked = 2;
// A rank: around it 10, and that in its own list from lanes to a number 4; a list: pointers, count, test and loop; of
// two membranes a load, two comparisons, their masks' ones 2, two sums of which one lies beside the branch. Ties, which
// are rare, are not counted.
constexpr Slots kRank = 14, kRankedList = 6, kRankedPair = 7;

// membraneGradient for a pair of a vertex, of which it reads reset, surrogate and detach_reset: ten loads
// and four stores; the comparison with the second threshold and its mask 2 and one of the two masked products (compare,
// mask, multiply: 3) in their bundles; the other masked product, two sums, the products with gain and decay and the sum
// of the bias wait for each other: 8; pointers and branch 3.
constexpr Slots membraneGradient(const auto& s) {
  return 10 + 4 + 8 + 3 + surrogate(s.surrogate) + throughReset(s.reset, s.detach_reset, s.surrogate);
}

// What a second state takes besides: loads of its gradient of the step after, that of its last one and five constants;
// stores of both; sums: one in the spikes' gradient, one in the membrane's, two in its own, one in the current's, of
// which the products of all but the second last find bundles: 6; whether it raises thresholds 3. If so, loads of it and
// of its coupling 2, the product, sums into both thresholds 2, product and sum into its gradient 2.
constexpr Slots secondGradient(bool raises) { return 7 + 2 + 6 + 3 + (raises ? 2 + 1 + 2 + 2 : 0); }

template <class V>
Slots secondGradientOf(const V& vertex) {
  if constexpr (V::kHasSecond) {
    return secondGradient(vertex.raises);
  } else {
    return 0;
  }
}

// Through a reset of plain neurons that does not pass on the gradient as it is: two loads and their row, and the reset.
constexpr Slots plainReset(const auto& s) {
  return s.detach_reset && s.reset != Zero ? 0 : 3 + throughReset(s.reset, s.detach_reset, s.surrogate);
}
// A step of plain neurons, with constants and sums in registers: two words of the spikes' gradient, their test 2, that
// of the counts, the store, two pointers and the branch; products and sums find bundles. Of counts: load, comparison,
// both lanes in one, a main register, the branch.
constexpr Slots plainStep(const auto& s, bool counted) { return 9 + plainReset(s) + (counted ? 5 : 0); }
// Two of them share pointers and the branch.
constexpr Slots kSharedByTwo = 3;
// With a gradient at the spike besides: three loads with the product for their row 2, the difference, the surrogate,
// comparison, mask, product and sum 4, the branch; that of counts: two loads, two masks, two products or sums.
constexpr Slots activeStep(unsigned char surrogate_kind, bool counted) {
  return 3 + 2 + 1 + surrogate(surrogate_kind) + 4 + 1 + (counted ? 6 : 0);
}
// Around the steps: two constants; three sums that are loaded and stored, whether they start, the test of the counts 3,
// whether a step is left over 2.
constexpr Slots kPlainNumber = 2 + 6 + 2 + 3 + 2;

// LeakyGradientScan for a pair, its constants and sums in registers: load, store, two pointers and the
// branch; a product that the store waits for; sums and the other product find bundles. Behind the end without these.
constexpr Slots kLeakyGradient = 6, kLeakyPadding = 5;
// Two constants; two sums that are loaded and stored, whether they start; the loops.
constexpr Slots kLeakyNumber = 2 + 4 + 2 + 4;

// The gradients of decay, threshold and gain besides: four loads and three stores more, the reset of the membrane
// before, three products, three sums, a quotient and its test (3).
constexpr Slots constantsGradient(const auto& s) {
  return membraneGradient(s) + 10 + 4 + reset(s.reset) + kQuotient + 3;
}

// Those of a second state besides: loads of both its states and of six constants 8; the threshold before, the current
// told from the membrane, and from the second state: two products or sums each that find no bundle, 6, and a quotient
// with its test and choice 4; six gradients of a load, a product, a sum in a bundle and a store: 3 each.
constexpr Slots kSecondConstantsGradient = 8 + 6 + kQuotient + 4 + 6 * 3;

// Of a readout, for a pair: eight loads, three stores, four products, three sums and a difference of which
// half find a bundle, a quotient and its test 3, branch 2.
constexpr Slots kLeakyConstants = 8 + 3 + 4 + kQuotient + 3 + 2;

// A step past the end: the store, its pointer and the branch.
constexpr Slots kPaddedStep = 3;

// SlotsOfNeurons: a row's pointers, its record, two starts with their bounds, a second loop 4, two neurons a store; an
// entry's load, difference, test and branch, and one that is own.
constexpr Slots kSlotsRow = 12 + kRecordHeader + 4 + 4, kSlotsEntry = 4, kOwnEntry = 2 + kShortStore;
// A neuron in a list: the address of its first sum 4, a load with the sum of the one before for each part, a branch for
// one or four of them. Before: two loads of slots, their tests 2, both sums into one register 2.
constexpr Slots kSlotsTests = 6, kListedNeuron = 4, kListedPart = 2, kFourParts = 5;
// Plain neurons: the rows of three tables 7, the test of the length 2, two slots with their tests 4, of counts two
// words and their test 4, the reset's 2; five loads, four stores, three sums or products that find no bundle. With a
// gradient at the spike the row, three loads, two sums, the surrogate's difference, comparison, mask and product 4,
// both sums of slots into one register 2; with that of counts two loads, two masks, two products or sums. Past the end:
// row, test, store.
constexpr Slots kPlainRecurrent = 7 + 2 + 4 + 4 + 2 + 5 + 4 + 3, kPlainFrozen = 6;
constexpr Slots activeRecurrent(unsigned char surrogate_kind, bool counted) {
  return 2 + 3 + 2 + surrogate(surrogate_kind) + 4 + 2 + (counted ? 6 : 0);
}

// A sequence: pointers to its rows 6, its length with the test 3, the place of its last record 6, the loop 3.
constexpr Slots kLastRecord = 18;
// An entry: id, range 2, address, (load,) store, branch.
constexpr Slots kLastSpike = 6, kLastGradient = 7;

// LifLastGradient for a pair: five loads, two stores, difference, the product and its mask 3, two sums of
// which one finds a bundle, the surrogate, pointers and branch 3.
constexpr Slots lastGradient(unsigned char surrogate_kind) { return 5 + 2 + 1 + 3 + 1 + surrogate(surrogate_kind) + 3; }
// Of a second state that raises the threshold besides: loads of it, its coupling and both gradients, their stores, the
// raised threshold 2, two products and differences of which half find a bundle.
constexpr Slots kLastSecondGradient = 4 + 2 + 2 + 2;

// LifFirstGradient for a pair: five loads, two stores, two sums beside the reset, the branch. Of a second
// state besides: loads of it, its gradients 3 and its constants 4, stores of both; the raised threshold 1; the masked
// product (compare, mask, multiply: 3) with the surrogate's slope; three sums into the membrane's and the threshold's
// gradient, two into its own, one into the coupling's, products in their bundles.
constexpr Slots firstGradient(const auto& s) { return 9 + throughReset(s.reset, s.detach_reset, s.surrogate); }
constexpr Slots firstSecondGradient(const auto& s) { return 3 + 4 + 2 + 1 + 3 + surrogate(s.surrogate) + 6; }

}  // namespace snnjax::cycles
