// What the codelets of lif_constants_gradient.cpp cost a worker.
#pragma once

#include <concepts>

#include "lif_network_backward_cycles.hpp"

namespace snnjax {

class LifConstantsGradient;
class LeakyConstantsGradient;
class LifFirstGradient;

namespace cycles {

// The gradients of decay, threshold and gain besides: four loads and three stores more, the reset of the membrane
// before, three products, three sums, a quotient and its test (3).
constexpr Slots constantsGradient(GradientSwitches s) {
  return membraneGradient(s) + 10 + 4 + reset(s.reset) + kQuotient + 3;
}

// Of a read-out, for one neuron or pair: eight loads, three stores, four products, three sums and a difference of which
// half find a bundle, a quotient and its test 3, branch 2. Behind the end: two loads, sum, store, branch 2.
constexpr Slots kLeakyConstants = 8 + 3 + 4 + kQuotient + 3 + 2, kLeakyBehindEnd = 6;

}  // namespace cycles

std::uint64_t workerCycles(const std::same_as<LifConstantsGradient> auto& vertex, unsigned worker) {
  using namespace cycles;
  return gradientSamples(vertex, worker, 25, fill(vertex.neurons, 4),
                         [&](unsigned) { return numbersOf(vertex.neurons) * constantsGradient(switchesOf(vertex)); });
}

std::uint64_t workerCycles(const std::same_as<LeakyConstantsGradient> auto& vertex, unsigned worker) {
  using namespace cycles;
  const Slots numbers = numbersOf(vertex.neurons);
  return gradientSamples(vertex, worker, 14, numbers * kLeakyBehindEnd,
                         [&](unsigned) { return numbers * kLeakyConstants; });
}

// Once behind the loop over time: five loads, two stores, two sums beside the reset, the branch.
std::uint64_t workerCycles(const std::same_as<LifFirstGradient> auto& vertex, unsigned worker) {
  using namespace cycles;
  const Slots each = 9 + throughReset(vertex.reset, vertex.detach_reset, vertex.surrogate);
  const unsigned workers = vertex.numWorkers();
  const Slots own = worker < vertex.batch ? (vertex.batch - worker + workers - 1) / workers : 0;
  return entry(12, false) + own * (8 + numbersOf(vertex.neurons) * each);
}

}  // namespace snnjax
