// What Adam (adam.cpp) costs a worker.
#pragma once

#include "issue_slots.hpp"
#include "workers.hpp"

namespace snnjax {

template <class W>
class Adam;

namespace cycles {

// Powers of the decay rates and their corrections, two quotients.
constexpr Slots kAdamPowers = 8 + 2 * kQuotient;
// A pair: loads of gradient, both moments and weights 4, stores of both moments, zeros and weights 4; the square and
// the first moment share bundles, the second moment 2, its correction 1, root, sum with epsilon 1, quotient, product
// with the rate and the difference 2 wait for each other; the corrected first moment and one load share a bundle; the
// branch 2.
constexpr Slots kAdamPair = 4 + 4 + 2 + 1 + kRoot + 1 + kQuotient + 2 + 2;

// Halves are widened and rounded.
constexpr Slots adam(Slots weights, unsigned width) {
  return kAdamPowers + (weights + 1) / 2 * (kAdamPair + (width < 4 ? 2 : 0));
}

}  // namespace cycles

template <class W>
std::uint64_t workerCycles(const Adam<W>& vertex, unsigned worker) {
  const Range own = shareOf(vertex.n, worker, 2);
  return cycles::entry(10, true) + cycles::adam(own.last - own.first, sizeof(W));
}

}  // namespace snnjax
