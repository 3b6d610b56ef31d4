// What the codelets of lif_constants_gradient.cpp cost a worker.
#pragma once

#include <concepts>

#include "lif_network_backward_cycles.hpp"

namespace snnjax {

template <bool has_second>
class LifConstantsGradient;
class LeakyConstantsGradient;
template <bool has_second>
class LifFirstGradient;

namespace cycles {

// The gradients of decay, threshold and gain besides: four loads and three stores more, the reset of the membrane
// before, three products, three sums, a quotient and its test (3).
constexpr Slots constantsGradient(GradientSwitches s) {
  return membraneGradient(s) + 10 + 4 + reset(s.reset) + kQuotient + 3;
}

// Those of a second state besides: loads of both its states and of six constants 8; the threshold before, the current
// told from the membrane, and from the second state: two products or sums each that find no bundle, 6, and a quotient
// with its test and choice 4; six gradients of a load, a product, a sum in a bundle and a store: 3 each.
constexpr Slots kSecondConstantsGradient = 8 + 6 + kQuotient + 4 + 6 * 3;

// LifFirstGradient for one neuron or pair: five loads, two stores, two sums beside the reset, the branch. Of a second
// state besides: loads of it, its gradients 3 and its constants 4, stores of both; the raised threshold 1; the masked
// product (compare, mask, multiply: 3) with the surrogate's slope; three sums into the membrane's and the threshold's
// gradient, two into its own, one into the coupling's, products in their bundles.
constexpr Slots firstGradient(GradientSwitches s) { return 9 + throughReset(s.reset, s.detach_reset, s.surrogate); }
constexpr Slots firstSecondGradient(GradientSwitches s) { return 3 + 4 + 2 + 1 + 3 + surrogate(s.surrogate) + 6; }

// Of a readout, for one neuron or pair: eight loads, three stores, four products, three sums and a difference of which
// half find a bundle, a quotient and its test 3, branch 2. Past the end: two loads, sum, store, branch 2.
constexpr Slots kLeakyConstants = 8 + 3 + 4 + kQuotient + 3 + 2, kLeakyBehindEnd = 6;

}  // namespace cycles

template <bool has_second>
std::uint64_t workerCycles(const LifConstantsGradient<has_second>& vertex, unsigned worker) {
  using namespace cycles;
  const Slots second = secondGradientOf(vertex) + (has_second ? kSecondConstantsGradient : 0);
  return gradientSamples(vertex, worker, has_second ? 31 : 25, fill(vertex.neurons, 4), [&](unsigned) {
    return numbersOf(vertex.neurons) * (constantsGradient(switchesOf(vertex)) + second);
  });
}

std::uint64_t workerCycles(const std::same_as<LeakyConstantsGradient> auto& vertex, unsigned worker) {
  using namespace cycles;
  const Slots numbers = numbersOf(vertex.neurons);
  return gradientSamples(vertex, worker, 14, numbers * kLeakyBehindEnd,
                         [&](unsigned) { return numbers * kLeakyConstants; });
}

// Once after the loop over time.
template <bool has_second>
std::uint64_t workerCycles(const LifFirstGradient<has_second>& vertex, unsigned worker) {
  using namespace cycles;
  const GradientSwitches switches = switchesOf(vertex);
  const Slots each = firstGradient(switches) + (has_second ? firstSecondGradient(switches) : 0);
  const unsigned workers = vertex.numWorkers();
  const Slots own = worker < vertex.batch ? (vertex.batch - worker + workers - 1) / workers : 0;
  return entry(has_second ? 18 : 12, false) + own * (8 + numbersOf(vertex.neurons) * each);
}

}  // namespace snnjax
