// What the codelets of lif_network_state.cpp cost a worker.
#pragma once

#include "../lists/listed_rows_cycles.hpp"
#include "../lists/lists.hpp"
#include "lif_gradient_scan_cycles.hpp"

namespace snnjax::cycles {

// A sequence: pointers to its rows 6, its length with the test 3, the place of its last record 6, the loop 3.
constexpr Slots kLastRecord = 18;
// An entry: id, range 2, address, (load,) store, branch.
constexpr Slots kLastSpike = 6, kLastGradient = 7;

// The sequences of a worker: each(list) counts the work on the last record.
template <class V, class Each>
Slots lastRecords(const V& vertex, unsigned worker, unsigned fields, Slots without_steps, Each&& each) {
  Slots slots = entry(fields, false);
  for (unsigned b = worker; b < vertex.rows; b += V::numWorkers()) {
    slots += kLastRecord;
    if (vertex.lengths[b] == 0) {
      slots += without_steps;
      continue;
    }
    const unsigned t = smaller(vertex.lengths[b], vertex.num_steps) - 1;
    const unsigned short* const record = &vertex.list[(t * vertex.rows + b) * vertex.stride];
    slots += kRecordHeader + each(List<unsigned short>{record, vertex.capacity});
  }
  return slots;
}

// LifLastGradient for one neuron or pair: five loads, two stores, difference, the product and its mask 3, two sums of
// which one finds a bundle, the surrogate, pointers and branch 3.
constexpr Slots lastGradient(unsigned char surrogate_kind) { return 5 + 2 + 1 + 3 + 1 + surrogate(surrogate_kind) + 3; }
// Of a second state that raises the threshold besides: loads of it, its coupling and both gradients, their stores, the
// raised threshold 2, two products and differences of which half find a bundle.
constexpr Slots kLastSecondGradient = 4 + 2 + 2 + 2;

// LifFirstGradient for one neuron or pair: five loads, two stores, two sums beside the reset, the branch. Of a second
// state besides: loads of it, its gradients 3 and its constants 4, stores of both; the raised threshold 1; the masked
// product (compare, mask, multiply: 3) with the surrogate's slope; three sums into the membrane's and the threshold's
// gradient, two into its own, one into the coupling's, products in their bundles.
constexpr Slots firstGradient(GradientSwitches s) { return 9 + throughReset(s.reset, s.detach_reset, s.surrogate); }
constexpr Slots firstSecondGradient(GradientSwitches s) { return 3 + 4 + 2 + 1 + 3 + surrogate(s.surrogate) + 6; }

}  // namespace snnjax::cycles
