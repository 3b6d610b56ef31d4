// What the codelets of lif_scan.cpp cost a worker: its numbers in all steps of a block.
#pragma once

#include <concepts>

#include "neuron_cycles.hpp"

namespace snnjax {

template <bool has_second>
class LifScan;
class LeakyScan;

namespace cycles {

// A step outside of a block: load, compare, return.
constexpr Slots kIdle = kCall + 4;
// NeuronRows::advance for one neuron or pair: loads of v, threshold, decay, gain, bias, counts; stores of the membrane
// twice and of the counts; comparisons, masks and the reset in their bundles; the product with the decay, the two sums
// and the product with the gain wait for each other: 4; the reset's choice 2; pointers and branch 2.
constexpr Slots advance(unsigned char reset_kind) { return 6 + 3 + 4 + 2 + 2 + (reset_kind == None ? 0 : 2); }

// What a second state takes besides: loads of it and of five constants, its store; the sums of its three own terms and
// of the current's (the products find bundles beside the loads), its product and sum in the membrane wait for each
// other: 6; where its row is 1, whether it raises thresholds 2. If so, a load, a store, two products of which one finds
// a bundle, two sums.
constexpr Slots advanceSecond(bool raises) { return 6 + 1 + 6 + 1 + 2 + (raises ? 1 + 1 + 1 + 2 : 0); }
// Its row past the end: load, store.
constexpr Slots kFreezeSecond = 2;

// A number in all steps of a block: pointers to its rows 9, the loops 3. A step: its length's comparison 2,
// the current's load, the row's pointers 3, the branch.
constexpr Slots kScanNumber = 12, kScanStep = 7;
// A step past the end: loads, stores and the branch.
constexpr Slots kFrozenStep = 6;
// LeakyScan: loads of current, bias, decay and gain, sum, product and sum after each other, the store.
constexpr Slots kLeakyScanStep = 4 + 3 + 1;

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

// The steps of a sample: `inside` each until it ends, then `behind`.
template <class V>
Slots steps(const V& vertex, unsigned b, Slots inside, Slots behind) {
  const unsigned before = *vertex.block * vertex.num_steps, length = vertex.lengths[b];
  const Slots within = length < before ? 0 : smaller(length - before, vertex.num_steps);
  return kScanNumber + within * (kScanStep + inside) + (vertex.num_steps - within) * (kScanStep + behind);
}

}  // namespace cycles

template <bool has_second>
std::uint64_t workerCycles(const LifScan<has_second>& vertex, unsigned worker) {
  using namespace cycles;
  Slots inside = advance(vertex.reset), behind = kFrozenStep;
  if constexpr (has_second) {
    inside += advanceSecond(vertex.raises);
    behind += kFreezeSecond;
  }
  return entry(has_second ? 21 : 16, false) +
         ownNumbers(vertex, worker, [&](unsigned b) { return steps(vertex, b, inside, behind); });
}

std::uint64_t workerCycles(const std::same_as<LeakyScan> auto& vertex, unsigned worker) {
  using namespace cycles;
  return entry(10, false) + ownNumbers(vertex, worker, [&](unsigned b) { return steps(vertex, b, kLeakyScanStep, 1); });
}

}  // namespace snnjax
