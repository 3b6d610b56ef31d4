// What the codelets of lif_scan.cpp cost a worker: its numbers in all steps of a block.
#pragma once

#include "neuron_cycles.hpp"
#include "neuron_rows.hpp"

namespace snnjax::cycles {

// A step outside of a block: load, compare, return.
constexpr Slots kIdle = kCall + 4;
// NeuronRun for one neuron or pair. Before its steps: loads of v and five constants, with their addresses 6; the bits
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

// A number in all steps of a block, backward: pointers to its rows 9, the loops 3. A step: its length's comparison 2,
// the current's load, the row's pointers 3, the branch.
constexpr Slots kScanNumber = 12, kScanStep = 7;

// What forEachOwnNumber deals out to a worker: of(b) for each number, or pair, of a sample.
template <class V, class Of>
Slots ownNumbers(const V& vertex, unsigned worker, Of&& of) {
  const unsigned pairs = (vertex.neurons + 1) / 2;
  const Slots each = vertex.neurons % 2 == 0 ? 1 : 2;
  unsigned pair = worker;
  Slots slots = 0;
  for (unsigned b = 0; b < vertex.batch; ++b, pair -= pairs) {
    for (; pair < pairs; pair += V::numWorkers()) slots += each * of(b);
    slots += 4;
  }
  return slots;
}

// The same where numbers differ: of(b, j, lanes) for each, which is a pair of neighbours or a single neuron.
template <class V, class Of>
Slots unlikeNumbers(const V& vertex, unsigned worker, Of&& of) {
  const unsigned lanes = vertex.neurons % 2 == 0 ? 2 : 1;
  Slots slots = 4 * vertex.batch;
  forEachOwnNumber(vertex.batch, vertex.neurons, worker, [&](unsigned b, unsigned j, auto) {
    if (j % lanes == 0) slots += of(b, j, lanes);
  });
  return slots;
}

// The steps of a sample in a block.
template <class V>
Slots stepsOf(const V& vertex, unsigned b) {
  return stepsInside(vertex.lengths[b], *vertex.block * vertex.num_steps, vertex.num_steps);
}

}  // namespace snnjax::cycles
