// What the codelets of spike_matmul.cpp cost a worker: entries of value 0 and ids out of range are counted as such.
#pragma once

#include "../lists/listed_rows_cycles.hpp"
#include "../lists/lists.hpp"

namespace snnjax {

template <class W, class Id>
class SpikeMatmul;
template <class W, class Id>
class SpikeMatmulValuesGradient;
template <class W, class Id>
class SpikeMatmulWeightsGradient;

namespace cycles {

// A row of the batch: pointers, loop.
constexpr Slots kMatmulRow = 10;
// Skipping an entry of value 0, once for each block of columns: its load, the id's, the test, the branch, the loop.
constexpr Slots kSkipped = 5;
// Storing a sum.
constexpr Slots matmulStore(unsigned bytes) { return 1 + store(bytes); }

constexpr Slots matmulRow(Slots used, Slots skipped, unsigned outputs, unsigned width, Slots each_store) {
  return kMatmulRow + sumListedRows(used, outputs, width, true) + skipped * kSkipped * blocksOf(outputs, true).count() +
         numbersOf(outputs) * each_store;
}

// An id that another worker takes: load, subtract, compare, branch, loop. One's own: the same, and the update.
constexpr Slots kForeign = 5;

}  // namespace cycles

template <class W, class Id>
std::uint64_t workerCycles(const SpikeMatmul<W, Id>& vertex, unsigned worker) {
  using namespace cycles;
  const Range own = shareOf(vertex.rows, worker, rowsPerUnit<W>(vertex.outputs));
  // Pairs of halves are one word, which needs no merging.
  const unsigned bytes = vertex.outputs % 2 == 0 ? 4 : sizeof(W);
  Slots slots = entry(9, true);
  for (unsigned b = own.first; b < own.last; ++b) {
    Slots used = 0;
    for (unsigned k = 0; k < vertex.capacity; ++k) used += vertex.values[b * vertex.capacity + k] != W(0) ? 1U : 0U;
    slots += matmulRow(used, vertex.capacity - used, vertex.outputs, sizeof(W), matmulStore(bytes));
  }
  return slots;
}

template <class W, class Id>
std::uint64_t workerCycles(const SpikeMatmulValuesGradient<W, Id>& vertex, unsigned worker) {
  using namespace cycles;
  const Range own = shareOf(vertex.rows, worker);
  return entry(8, true) +
         Slots{own.last - own.first} * (kMatmulRow + dotListedRows(vertex.capacity, vertex.outputs, sizeof(W)));
}

template <class W, class Id>
std::uint64_t workerCycles(const SpikeMatmulWeightsGradient<W, Id>& vertex, unsigned worker) {
  using namespace cycles;
  const Range own = shareOf(vertex.num_inputs, worker);
  Slots slots = entry(8, true) + Slots{vertex.rows} * (kMatmulRow + vertex.capacity * kForeign);
  for (unsigned i = 0; i < vertex.rows * vertex.capacity; ++i) {
    const bool is_own = static_cast<unsigned>(vertex.ids[i]) - own.first < own.last - own.first;
    slots += is_own ? addToListedRows(1, vertex.outputs, true) : 0;
  }
  return slots;
}

}  // namespace snnjax
