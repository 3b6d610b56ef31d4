// What the codelets of listed_gradients.cpp cost a worker: the listed ids that fall to it.
#pragma once

#include "listed_rows_cycles.hpp"
#include "lists.hpp"

namespace snnjax {

template <class Id>
class ListedRowsGradient;
template <class Id>
class ValuedRowsGradient;
template <class W, class Id>
class ListedDots;
template <class Id>
class ScatterList;

namespace cycles {

// A list of which `own` of `spikes` spikes lie in the worker's rows: pointers and loop 8, the search for the first, the
// updates, and for each block of columns the id that ends them.
constexpr Slots rowsGradientSample(Slots spikes, Slots own, unsigned columns, bool valued) {
  return 8 + kRecordHeader + numBelow(spikes) + addToListedRows(own, columns, valued) +
         kEndOfRows * blocksOf(columns).count();
}

// The lists of a vertex; each worker goes through all of them.
template <class Id, class V>
Slots rowsGradient(const V& vertex, unsigned worker, unsigned fields, bool valued) {
  if (*vertex.iteration - vertex.delay >= vertex.num_steps) return kCall + 5;
  const Range own = shareOf(vertex.num_inputs, worker);
  Slots slots = entry(fields, true);
  for (unsigned b = 0; own.first < own.last && b < vertex.batch; ++b) {
    const List<Id> list = {&vertex.lists[b * vertex.stride], vertex.capacity};
    const Range entries = entriesWithin(list.ids(), list.spikes(), own);
    slots += rowsGradientSample(list.spikes(), entries.last - entries.first, vertex.neurons, valued);
  }
  return slots;
}

// One entry of a scattered list: id, range 2, value, the block by a product with the inverse 5 and its correction 5,
// the address 4, the store, the branch.
constexpr Slots kScatterEntry = 20;

constexpr Slots scatterGroup(Slots count, Slots own) { return entriesWithin(count) + own * kScatterEntry; }

}  // namespace cycles

template <class Id>
std::uint64_t workerCycles(const ListedRowsGradient<Id>& vertex, unsigned worker) {
  return cycles::rowsGradient<Id>(vertex, worker, 11, false);
}

template <class Id>
std::uint64_t workerCycles(const ValuedRowsGradient<Id>& vertex, unsigned worker) {
  return cycles::rowsGradient<Id>(vertex, worker, 12, true);
}

template <class W, class Id>
std::uint64_t workerCycles(const ListedDots<W, Id>& vertex, unsigned worker) {
  using namespace cycles;
  if (*vertex.iteration - vertex.delay >= vertex.num_steps) return kCall + 5;
  Slots slots = entry(12, false);
  for (unsigned b = worker; b < vertex.batch; b += vertex.numWorkers()) {
    const unsigned listed = List<Id>{&vertex.lists[b * vertex.stride], vertex.capacity}.listed();
    slots += 8 + kRecordHeader + dotListedRows(listed, vertex.neurons, sizeof(W)) + fill(vertex.capacity - listed, 4);
  }
  return slots;
}

template <class Id>
std::uint64_t workerCycles(const ScatterList<Id>& vertex, unsigned worker) {
  using namespace cycles;
  const unsigned t = vertex.num_steps - 1 - (*vertex.iteration - vertex.delay), columns = vertex.columns;
  const unsigned block_size = vertex.rows * columns;
  const Range blocks = shareOf(vertex.num_neurons / columns, worker, block_size % 2 == 0 ? 1 : 2);
  const Range own = {blocks.first * columns, blocks.last * columns};
  Slots slots = entry(11, true) + kDivision + kInverse + fill(Slots{blocks.last - blocks.first} * block_size, 4);
  for (unsigned b = 0; t < vertex.num_steps && b < vertex.rows; ++b) {
    const List<Id> list = {&vertex.list[(t * vertex.rows + b) * vertex.stride], vertex.capacity};
    const unsigned spikes = list.spikes(), near = list.listed() - spikes;
    const Range first = entriesWithin(list.ids(), spikes, own), second = entriesWithin(list.ids() + spikes, near, own);
    slots += 10 + kRecordHeader + scatterGroup(spikes, first.last - first.first) +
             scatterGroup(near, second.last - second.first);
  }
  return slots;
}

}  // namespace snnjax
