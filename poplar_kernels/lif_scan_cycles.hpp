// What the codelets of lif_scan.cpp cost a worker: its numbers in all steps.
#pragma once

#include <concepts>

#include "lif_network_cycles.hpp"

namespace snnjax {

template <bool has_second>
class LifScan;
class LeakyScan;

namespace cycles {

// A number in all steps: pointers to its rows 8, zero to the counts, the loops 3. A step: its length's comparison 2,
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
  const Slots within = vertex.lengths[b] < vertex.num_steps ? vertex.lengths[b] : vertex.num_steps;
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
  return entry(has_second ? 20 : 15, false) +
         ownNumbers(vertex, worker, [&](unsigned b) { return steps(vertex, b, inside, behind); });
}

std::uint64_t workerCycles(const std::same_as<LeakyScan> auto& vertex, unsigned worker) {
  using namespace cycles;
  return entry(9, false) + ownNumbers(vertex, worker, [&](unsigned b) { return steps(vertex, b, kLeakyScanStep, 1); });
}

}  // namespace snnjax
