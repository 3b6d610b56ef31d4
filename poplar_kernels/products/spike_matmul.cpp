// spike_matmul: out[b] = sum_k values[b, k] * weights[ids[b, k]], and its exact backward pass. A tile holds some
// columns of the weights.
#include "../lists/listed_rows.hpp"
#include "cycles.hpp"

namespace snnjax {

template <class W, class Id>
class SpikeMatmul : public poplar::MultiVertex {
 public:
  In<Id> ids;                                    // [rows, capacity], out of range: contributes nothing
  In<W> values;                                  // [rows, capacity], 0: adds nothing whatever the weights
  In<W> weights;                                 // [num_inputs + 1, outputs], last row zeros
  Out<W> out;                                    // [rows, outputs]
  unsigned rows, capacity, num_inputs, outputs;  // outputs: even

  void compute(unsigned worker) {
    const ListedRows<const W> matrix = {&weights[0], num_inputs, outputs};
    for (const unsigned b : shareOf(rows, worker)) {
      W* const sums = &out[b * outputs];
      sumListedRows(matrix, &ids[b * capacity], capacity, Values<W>{&values[b * capacity]},
                    [&](unsigned j, auto numbers, auto sum) { numbers.store(sums + j, sum); });
    }
  }
};

// d_values[b, k] = <weights[ids[b, k]], g[b]>: over the tile's columns, so a partial sum where columns are spread.
template <class W, class Id>
class SpikeMatmulValuesGradient : public poplar::MultiVertex {
 public:
  In<Id> ids;           // [rows, capacity]
  In<W> weights;        // [num_inputs + 1, outputs], last row zeros
  In<W> g;              // [rows, outputs]
  Out<float> d_values;  // [rows, capacity]
  unsigned rows, capacity, num_inputs, outputs;

  void compute(unsigned worker) {
    const ListedRows<const W> matrix = {&weights[0], num_inputs, outputs};
    for (const unsigned b : shareOf(rows, worker)) {
      float* const dots = &d_values[b * capacity];
      dotListedRows(matrix, &ids[b * capacity], capacity, &g[b * outputs],
                    [&](unsigned k, float dot) { dots[k] = dot; });
    }
  }
};

// d_weights[ids[b, k]] += values[b, k] * g[b], for ids in any order: each worker goes through all lists and takes the
// ids of its share of the rows. Sums are floats; a cast at the end rounds to half.
template <class W, class Id>
class SpikeMatmulWeightsGradient : public poplar::MultiVertex {
 public:
  In<Id> ids;              // [rows, capacity]
  In<W> values;            // [rows, capacity]
  In<W> g;                 // [rows, outputs]
  InOut<float> d_weights;  // [num_inputs + 1, outputs], the last row is not touched
  unsigned rows, capacity, num_inputs, outputs;

  void compute(unsigned worker) {
    const ListedRows<float> matrix = {&d_weights[0], num_inputs, outputs};
    const Range own = shareOf(num_inputs, worker);
    for (unsigned b = 0; b < rows; ++b) {
      const Values<W> of_row = {&values[b * capacity]};
      const Id* const list = &ids[b * capacity];
      for (unsigned k = 0; k < capacity; ++k) {
        if (!own.contains(static_cast<unsigned>(list[k]))) continue;
        addToListedRows(matrix, list, Range{k, k + 1}, of_row, &g[b * outputs]);
      }
    }
  }
};

using namespace cycles;

template <class W, class Id>
std::uint64_t workerCycles(const SpikeMatmul<W, Id>& vertex, unsigned worker) {
  Slots slots = entry(9, true);
  for (const unsigned b : shareOf(vertex.rows, worker)) {
    Slots used = 0;
    for (unsigned k = 0; k < vertex.capacity; ++k) used += vertex.values[b * vertex.capacity + k] != W(0) ? 1U : 0U;
    slots += matmulRow(used, vertex.capacity - used, vertex.outputs, sizeof(W));
  }
  return slots;
}

template <class W, class Id>
std::uint64_t workerCycles(const SpikeMatmulValuesGradient<W, Id>& vertex, unsigned worker) {
  const Range own = shareOf(vertex.rows, worker);
  return entry(8, true) + Slots{own.count()} * (kMatmulRow + dotListedRows(vertex.capacity, vertex.outputs, sizeof(W)));
}

template <class W, class Id>
std::uint64_t workerCycles(const SpikeMatmulWeightsGradient<W, Id>& vertex, unsigned worker) {
  const Range own = shareOf(vertex.num_inputs, worker);
  Slots slots = entry(8, true) + Slots{vertex.rows} * (kMatmulRow + vertex.capacity * kForeign);
  for (unsigned i = 0; i < vertex.rows * vertex.capacity; ++i) {
    const bool is_own = static_cast<unsigned>(vertex.ids[i]) - own.first < own.count();
    slots += is_own ? addToListedRows(1, vertex.outputs, true) : 0;
  }
  return slots;
}

SNNJAX_INSTANCES_OF_IDS(SpikeMatmul, float)
SNNJAX_INSTANCES_OF_IDS(SpikeMatmul, half)
SNNJAX_INSTANCES_OF_IDS(SpikeMatmulValuesGradient, float)
SNNJAX_INSTANCES_OF_IDS(SpikeMatmulValuesGradient, half)
SNNJAX_INSTANCES_OF_IDS(SpikeMatmulWeightsGradient, float)
SNNJAX_INSTANCES_OF_IDS(SpikeMatmulWeightsGradient, half)

}  // namespace snnjax
