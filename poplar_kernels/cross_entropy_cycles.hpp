// What CrossEntropy (cross_entropy.cpp) costs a worker: its samples, each of its own length.
#pragma once

#include <concepts>

#include "issue_slots.hpp"
#include "workers.hpp"

namespace snnjax {

class CrossEntropy;

namespace cycles {

constexpr Slots kLogarithm = 12;  // PopLibs' estimators, for two floats
// A step of a pooled output: the load that moves on, comparison, choice, the branch with the sum in its bundle, the
// address of the next step 2. Pooled outputs are made three times, for the maximum, the sum and the gradient.
constexpr Slots kPooledStep = 6, kPoolings = 3;
// A step of the gradient: the test for the end 2, the store, the branch; where the largest counts its load and the
// comparison 4 besides, and once more to count ties.
constexpr Slots kGradientStep = 4, kTie = 4;
// A class: two exponentials, a quotient, a dozen other operations.
constexpr Slots kClass = 2 * kExponential + kQuotient + 12;

constexpr Slots crossEntropySample(Slots steps, Slots num_steps, Slots classes, bool largest_counts) {
  const Slots step = kPoolings * kPooledStep + (largest_counts ? 2 * kTie + 2 : 0);
  return 30 + kLogarithm + kQuotient + classes * (kClass + steps * step + num_steps * kGradientStep);
}

}  // namespace cycles

std::uint64_t workerCycles(const std::same_as<CrossEntropy> auto& vertex, unsigned worker) {
  cycles::Slots slots = cycles::entry(10, false);
  for (unsigned b = worker; b < vertex.rows; b += vertex.numWorkers()) {
    const unsigned steps = smaller(vertex.lengths[b], vertex.num_steps);
    slots += cycles::crossEntropySample(steps, vertex.num_steps, vertex.classes, vertex.over == 2);
  }
  return slots;
}

}  // namespace snnjax
