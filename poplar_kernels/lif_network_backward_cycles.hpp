// What the codelets of lif_network_backward.cpp cost a worker: its samples with the ids that are really listed.
#pragma once

#include "listed_rows_cycles.hpp"
#include "lists.hpp"
#include "neuron_cycles.hpp"

namespace snnjax {

template <class W, class Id, bool has_second>
class LifBackward;
template <class W, class Id>
class LeakyBackward;
template <bool has_second>
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

// What a second state takes besides: loads of its gradient of the step after, that of its last one and five constants;
// stores of both; sums: one in the spikes' gradient, one in the membrane's, two in its own, one in the current's, of
// which the products of all but the second last find bundles: 6; whether it raises thresholds 3. If so, loads of it and
// of its coupling 2, the product, sums into both thresholds 2, product and sum into its gradient 2.
constexpr Slots secondGradient(bool raises) { return 7 + 2 + 6 + 3 + (raises ? 2 + 1 + 2 + 2 : 0); }

template <class V>
Slots secondGradientOf(const V& vertex) {
  if constexpr (V::kHasSecond) {
    return secondGradient(vertex.raises);
  } else {
    return 0;
  }
}

// LeakyBackward for one neuron or pair: five loads, three stores, the choice whether inside 2, sum, product, product
// and sum, of which two find a bundle; branch 2.
constexpr Slots kLeakyGradient = 14;

// Dots of the listed ids, and zeros past them.
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

template <class W, class Id, bool has_second>
std::uint64_t workerCycles(const LifBackward<W, Id, has_second>& vertex, unsigned worker) {
  using namespace cycles;
  const Slots zeros = fill(vertex.neurons, 4) + fill(vertex.capacity, 4);
  return gradientSamples(vertex, worker, has_second ? 34 : 29, zeros, [&](unsigned b) {
    const List<Id> list = {&vertex.lists[b * vertex.stride], vertex.capacity};
    return numbersOf(vertex.neurons) * (membraneGradient(switchesOf(vertex)) + secondGradientOf(vertex)) +
           writeDots(list.listed(), vertex.capacity, vertex.neurons, sizeof(W));
  });
}

template <bool has_second>
std::uint64_t workerCycles(const LifMembraneGradient<has_second>& vertex, unsigned worker) {
  using namespace cycles;
  return gradientSamples(vertex, worker, has_second ? 27 : 22, fill(vertex.neurons, 4), [&](unsigned) {
    return numbersOf(vertex.neurons) * (membraneGradient(switchesOf(vertex)) + secondGradientOf(vertex));
  });
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
