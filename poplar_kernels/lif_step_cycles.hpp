// What the codelets of lif_step.cpp cost a worker.
#pragma once

#include "neuron_cycles.hpp"
#include "workers.hpp"

namespace snnjax {

template <class T>
class LifStep;
template <class T>
class LifStepBackward;

namespace cycles {

// The choices of a convention: its time of reset, where spikes come from, what counts as one.
constexpr Slots kConvention = 6;
// Widening two halves where they are loaded, rounding them where they are stored or compared.
constexpr Slots conversions(unsigned bytes, Slots count) { return bytes < 4 ? count : 0; }
// A number of `bytes`; two neighbours are a word or more.
constexpr Slots storeNumber(unsigned bytes, unsigned neurons) { return neurons % 2 == 0 ? 1 : store(bytes); }

// LifStep for one neuron or pair: five loads, two stores; a product with gain and decay and one sum that wait for each
// other: 3, the two comparisons with their masks 4, of which two find a bundle; pointers and branch 3.
constexpr Slots lifStep(unsigned char reset_kind, unsigned bytes, unsigned neurons) {
  return 5 + 2 * storeNumber(bytes, neurons) + 3 + 2 + 3 + kConvention + reset(reset_kind) + conversions(bytes, 5);
}

// LifStepBackward: the forward pass once more; loads of the two gradients, of three sums and the current; five stores;
// two slopes of the surrogate; the way back through the reset; nine products and sums of which four find a bundle.
constexpr Slots lifStepBackward(unsigned char reset_kind, bool detach, unsigned char surrogate_kind, unsigned bytes,
                                unsigned neurons) {
  return lifStep(reset_kind, bytes, neurons) + 6 + 3 + 5 + kConvention + 2 * surrogate(surrogate_kind) +
         throughReset(reset_kind, true, surrogate_kind) + (detach ? 0 : 3) + conversions(bytes, 6);
}

template <class T, class V>
Slots lifStepRows(const V& vertex, unsigned worker, unsigned fields, Slots each) {
  const Range own = shareOf(vertex.rows, worker, vertex.neurons % kPerWord<T> == 0 ? 1 : kPerWord<T>);
  return entry(fields, true) + Slots{own.last - own.first} * (8 + numbersOf(vertex.neurons) * each);
}

}  // namespace cycles

template <class T>
std::uint64_t workerCycles(const LifStep<T>& vertex, unsigned worker) {
  using namespace cycles;
  return lifStepRows<T>(vertex, worker, 13, lifStep(vertex.reset, sizeof(T), vertex.neurons));
}

template <class T>
std::uint64_t workerCycles(const LifStepBackward<T>& vertex, unsigned worker) {
  using namespace cycles;
  const Slots each = lifStepBackward(vertex.reset, vertex.detach_reset, vertex.surrogate, sizeof(T), vertex.neurons);
  return lifStepRows<T>(vertex, worker, 23, each) + 3 * fill(vertex.neurons, 4);
}

}  // namespace snnjax
