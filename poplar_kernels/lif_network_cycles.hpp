// What the codelets of lif_network.cpp cost a worker: its samples with the spikes that are really listed.
#pragma once

#include "listed_rows_cycles.hpp"
#include "lists.hpp"
#include "neuron_cycles.hpp"

namespace snnjax {

template <class W, class Id, bool has_second>
class LifForward;
template <class W, class Id>
class LeakyForward;
template <class W, class Id, bool has_second>
class LifRecurrentForward;
template <bool has_second>
class LifUpdate;

namespace cycles {

// A step outside of the layer's time: load, subtract, compare, return.
constexpr Slots kIdle = kCall + 6;
// A sample: pointers to its rows (8), its length with the comparison (3), the loop over samples (3).
constexpr Slots kSample = 14;

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

// LeakyForward for one neuron or pair: four loads, product with the decay in one's bundle, sum, product, sum, store,
// branch.
constexpr Slots kLeak = 9;

// Past the end of a sequence: load, two stores, branch.
constexpr Slots freeze(unsigned neurons) { return 4 * Slots{neurons}; }

// What an instance with a second state has besides, of `neurons` neurons of a sample and past its end; its fields.
struct SecondSlots {
  Slots inside = 0, frozen = 0;
  unsigned fields = 0;
};

template <class V>
SecondSlots secondSlots(const V& vertex) {
  if constexpr (V::kHasSecond) {
    return {numbersOf(vertex.neurons) * advanceSecond(vertex.raises), kFreezeSecond * vertex.neurons, 5};
  } else {
    return {};
  }
}

constexpr Slots forwardSample(Slots spikes, unsigned neurons, unsigned width, unsigned char reset_kind) {
  return kSample + kRecordHeader + sumListedRows(spikes, neurons, width, false) +
         numbersOf(neurons) * advance(reset_kind);
}

constexpr Slots updateSample(unsigned neurons, unsigned char reset_kind) {
  return kSample + numbersOf(neurons) * (advance(reset_kind) + 1);
}

// Besides: the current's load, the choice between the list and the spikes before the first step, a sum.
constexpr Slots recurrentSample(Slots spikes, unsigned neurons, unsigned width, unsigned char reset_kind) {
  return forwardSample(spikes, neurons, width, reset_kind) + numbersOf(neurons) * 3;
}

constexpr Slots leakySample(Slots spikes, unsigned neurons, unsigned width) {
  return kSample + kRecordHeader + sumListedRows(spikes, neurons, width, false) + numbersOf(neurons) * kLeak;
}

// The samples of a worker: inside(b) of one that has not ended, frozen slots of one that has.
template <class V, class Inside>
Slots samples(const V& vertex, unsigned worker, unsigned fields, Slots frozen, Inside&& inside) {
  const unsigned t = *vertex.iteration - vertex.delay;
  if (t >= vertex.num_steps) return kIdle;
  Slots slots = entry(fields, false);
  for (unsigned b = worker; b < vertex.batch; b += V::numWorkers()) {
    slots += t < vertex.lengths[b] ? inside(b) : kSample + frozen;
  }
  return slots;
}

// The same for neurons that fire: membrane(b) without what a second state takes.
template <class V, class Membrane>
Slots neuronSamples(const V& vertex, unsigned worker, unsigned fields, Membrane&& membrane) {
  const SecondSlots second = secondSlots(vertex);
  return samples(vertex, worker, fields + second.fields, freeze(vertex.neurons) + second.frozen,
                 [&](unsigned b) { return membrane(b) + second.inside; });
}

}  // namespace cycles

template <class W, class Id, bool has_second>
std::uint64_t workerCycles(const LifForward<W, Id, has_second>& vertex, unsigned worker) {
  return cycles::neuronSamples(vertex, worker, 20, [&](unsigned b) {
    const List<Id> list = {&vertex.lists[b * vertex.stride], vertex.capacity};
    return cycles::forwardSample(list.spikes(), vertex.neurons, sizeof(W), vertex.reset);
  });
}

template <class W, class Id, bool has_second>
std::uint64_t workerCycles(const LifRecurrentForward<W, Id, has_second>& vertex, unsigned worker) {
  const bool is_first = *vertex.iteration == vertex.delay;  // its list is not read
  return cycles::neuronSamples(vertex, worker, 22, [&](unsigned b) {
    const List<Id> list = {&vertex.lists[b * vertex.stride], vertex.capacity};
    return cycles::recurrentSample(is_first ? 0 : list.spikes(), vertex.neurons, sizeof(W), vertex.reset);
  });
}

template <bool has_second>
std::uint64_t workerCycles(const LifUpdate<has_second>& vertex, unsigned worker) {
  return cycles::neuronSamples(vertex, worker, 16,
                               [&](unsigned) { return cycles::updateSample(vertex.neurons, vertex.reset); });
}

template <class W, class Id>
std::uint64_t workerCycles(const LeakyForward<W, Id>& vertex, unsigned worker) {
  return cycles::samples(vertex, worker, 16, cycles::freeze(vertex.neurons), [&](unsigned b) {
    const List<Id> list = {&vertex.lists[b * vertex.stride], vertex.capacity};
    return cycles::leakySample(list.spikes(), vertex.neurons, sizeof(W));
  });
}

}  // namespace snnjax
