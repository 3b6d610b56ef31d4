// What the codelets of lif_network_backward.cpp cost a worker: its samples with the ids that are really listed.
#pragma once

#include <concepts>

#include "listed_rows_cycles.hpp"
#include "lists.hpp"
#include "neuron_cycles.hpp"

namespace snnjax {

template <class W, class Id>
class LifBackward;
template <class W, class Id>
class LeakyBackward;
class LifMembraneGradient;

namespace cycles {

// What is the same for neurons of a layer.
struct GradientSwitches {
  unsigned char reset, surrogate;
  bool detach_reset;
};

// A sample: pointers to its rows, its length with the comparison, the loop over samples.
constexpr Slots kGradientSample = 16;

// membraneGradient for one neuron or pair: ten loads and four stores; the comparison with the second threshold and its
// mask 2 and one of the two masked products (compare, mask, multiply: 3) in their bundles; the other masked product,
// two sums, the products with gain and decay and the sum of the bias wait for each other: 8; pointers and branch 3.
constexpr Slots membraneGradient(GradientSwitches s) {
  return 10 + 4 + 8 + 3 + surrogate(s.surrogate) + throughReset(s.reset, s.detach_reset, s.surrogate);
}

// LeakyBackward for one neuron or pair: five loads, three stores, the choice whether inside 2, sum, product, product
// and sum, of which two find a bundle; branch 2.
constexpr Slots kLeakyGradient = 14;

// Dots of the listed ids, and zeros behind them.
constexpr Slots writeDots(Slots listed, Slots capacity, unsigned neurons, unsigned width) {
  return kRecordHeader + dotListedRows(listed, neurons, width) + fill(capacity - listed, 4);
}

// The samples of a worker: inside(b) of one that has not ended, zeros for one that has.
template <class V, class Inside>
Slots gradientSamples(const V& vertex, unsigned worker, unsigned fields, Slots zeros, Inside&& inside) {
  const unsigned t = vertex.num_steps - 1 - (*vertex.iteration - vertex.delay);
  if (t >= vertex.num_steps) return kCall + 7;
  Slots slots = entry(fields, false);
  for (unsigned b = worker; b < vertex.batch; b += V::numWorkers()) {
    slots += kGradientSample + (t < vertex.lengths[b] ? inside(b) : zeros);
  }
  return slots;
}

template <class V>
GradientSwitches switchesOf(const V& vertex) {
  return {vertex.reset, vertex.surrogate, vertex.detach_reset};
}

}  // namespace cycles

template <class W, class Id>
std::uint64_t workerCycles(const LifBackward<W, Id>& vertex, unsigned worker) {
  using namespace cycles;
  const Slots zeros = fill(vertex.neurons, 4) + fill(vertex.capacity, 4);
  return gradientSamples(vertex, worker, 29, zeros, [&](unsigned b) {
    const List<Id> list = {&vertex.lists[b * vertex.stride], vertex.capacity};
    return numbersOf(vertex.neurons) * membraneGradient(switchesOf(vertex)) +
           writeDots(list.listed(), vertex.capacity, vertex.neurons, sizeof(W));
  });
}

std::uint64_t workerCycles(const std::same_as<LifMembraneGradient> auto& vertex, unsigned worker) {
  using namespace cycles;
  return gradientSamples(vertex, worker, 22, fill(vertex.neurons, 4),
                         [&](unsigned) { return numbersOf(vertex.neurons) * membraneGradient(switchesOf(vertex)); });
}

template <class W, class Id>
std::uint64_t workerCycles(const LeakyBackward<W, Id>& vertex, unsigned worker) {
  using namespace cycles;
  const Slots leak = numbersOf(vertex.neurons) * kLeakyGradient;
  return gradientSamples(vertex, worker, 18, leak + fill(vertex.capacity, 4), [&](unsigned b) {
    const List<Id> list = {&vertex.lists[b * vertex.stride], vertex.capacity};
    return leak + writeDots(list.listed(), vertex.capacity, vertex.neurons, sizeof(W));
  });
}

}  // namespace snnjax
