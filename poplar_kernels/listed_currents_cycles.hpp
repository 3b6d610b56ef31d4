// What the codelets of listed_currents.cpp cost a worker: its samples with the entries that contribute.
#pragma once

#include "listed_rows_cycles.hpp"
#include "lists.hpp"
#include "neuron_cycles.hpp"

namespace snnjax {

template <class W, class Id>
class ListedCurrent;
template <class W, class Id>
class ValuedCurrent;

namespace cycles {

// A sample: pointers to its row and record 6, its length with the comparison 3, the loop over samples 3.
constexpr Slots kCurrentSample = 12;
// An entry of value 0, once for each block of columns: its load, the id's, the test, the branch, the loop.
constexpr Slots kZeroEntry = 5;

// Sums of `used` entries beside `zeros` entries of value 0, and a store for each number or pair.
constexpr Slots currentSample(Slots used, Slots zeros, unsigned neurons, unsigned width, bool valued) {
  return kCurrentSample + kRecordHeader + sumListedRows(used, neurons, width, valued) +
         zeros * kZeroEntry * blocksOf(neurons).count() + numbersOf(neurons);
}

// The samples of a worker: inside(b) of one that has not ended.
template <class V, class Inside>
Slots currents(const V& vertex, unsigned worker, unsigned fields, Inside&& inside) {
  const unsigned t = *vertex.iteration - vertex.delay;
  if (t >= vertex.num_steps) return kCall + 6;
  Slots slots = entry(fields, false);
  for (unsigned b = worker; b < vertex.batch; b += V::numWorkers()) {
    slots += t < vertex.lengths[b] ? inside(b) : kCurrentSample;
  }
  return slots;
}

}  // namespace cycles

template <class W, class Id>
std::uint64_t workerCycles(const ListedCurrent<W, Id>& vertex, unsigned worker) {
  return cycles::currents(vertex, worker, 12, [&](unsigned b) {
    const List<Id> list = {&vertex.lists[b * vertex.stride], vertex.capacity};
    return cycles::currentSample(list.spikes(), 0, vertex.neurons, sizeof(W), false);
  });
}

template <class W, class Id>
std::uint64_t workerCycles(const ValuedCurrent<W, Id>& vertex, unsigned worker) {
  return cycles::currents(vertex, worker, 13, [&](unsigned b) {
    const unsigned spikes = List<Id>{&vertex.lists[b * vertex.stride], vertex.capacity}.spikes();
    cycles::Slots used = 0;
    for (unsigned k = 0; k < spikes; ++k) used += vertex.values[b * vertex.capacity + k] != 0.0f ? 1U : 0U;
    return cycles::currentSample(used, spikes - used, vertex.neurons, sizeof(W), true);
  });
}

}  // namespace snnjax
