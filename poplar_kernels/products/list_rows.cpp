// lif_network: products with the lists of all samples and steps of a block at once, a row for each; and those lists as
// dense rows, for the matrix unit.
#include "../lists/listed_rows.hpp"
#include "../words.hpp"
#include "cycles.hpp"

namespace snnjax {

// The value of each entry of a row, or 1.
template <bool valued, class V>
inline auto valuesOf([[maybe_unused]] const V& vertex, [[maybe_unused]] unsigned row) {
  if constexpr (valued) {
    return Values<float>{&vertex.values[row * vertex.capacity]};
  } else {
    return Ones{};
  }
}

// current[row] = sum of the rows of weights that the spikes of its list name, times their values. The lists were made
// by codelets of the same pass, from events too.
template <class W, bool valued>
class RowsCurrent : public poplar::MultiVertex {
 public:
  In<unsigned short> lists;      // [rows, stride], records of the layer below (lists.hpp)
  If<valued, In<float>> values;  // [rows, capacity], 0: adds nothing whatever the weights
  In<W> weights;                 // [num_inputs + 1, neurons], last row zeros
  Out<float> current;            // [rows, neurons], without the bias
  unsigned rows, stride, capacity, neurons;

  void compute(unsigned worker) {
    const MadeRows<const W> matrix = {&weights[0], neurons};
    const unsigned short* record = &lists[worker * stride];
    float* sums = &current[worker * neurons];
    for (unsigned row = worker; row < rows; row += numWorkers()) {
      sumListedRows(matrix, record + kListHeader, record[kKept], valuesOf<valued>(*this, row),
                    [&](unsigned j, auto numbers, auto sum) { numbers.store(sums + j, sum); });
      record += numWorkers() * stride;
      sums += numWorkers() * neurons;
    }
  }
};

// dots[row, k] = <weights[id], g_current[row]> of each listed id.
template <class W>
class RowsDots : public poplar::MultiVertex {
 public:
  In<unsigned short> lists;  // [rows, stride], records of the layer below
  In<W> weights;             // [num_inputs + 1, neurons], last row zeros
  In<float> g_current;       // [rows, neurons]
  Out<float> dots;           // [rows, capacity]
  unsigned rows, stride, capacity, num_inputs, neurons;

  void compute(unsigned worker) {
    const ListedRows<const W> matrix = {&weights[0], num_inputs, neurons};
    for (unsigned row = worker; row < rows; row += numWorkers()) {
      const List<unsigned short> list = {&lists[row * stride], capacity};
      dotListedRows(matrix, list.ids(), list.listed(), &g_current[row * neurons],
                    [&](unsigned k, float dot) { dots[row * capacity + k] = dot; });
    }
  }
};

// dense[row, id] = sum of the values of the spikes of a list that name `id`, 0 of others. Workers share the inputs of
// each row; lists ascend.
template <bool valued>
class RowsDense : public poplar::MultiVertex {
 public:
  In<unsigned short> lists;      // [rows, stride], records of the layer below
  If<valued, In<float>> values;  // [rows, capacity]
  Out<float> dense;              // [rows, num_inputs]
  unsigned rows, stride, capacity, num_inputs;

  void compute(unsigned worker) {
    const Range own = neuronsOfWorker(num_inputs, worker);
    for (unsigned row = 0; row < rows; ++row) {
      float* const to = &dense[row * num_inputs];
      fillRows(to + own.first, 0.0f, own.count(), num_inputs);
      const List<unsigned short> list = {&lists[row * stride], capacity};
      const auto values_of_row = valuesOf<valued>(*this, row);
      for (const unsigned k : list.spikesOfWorker(worker)) {
        const auto id = static_cast<unsigned>(list.ids()[k]);
        if (!own.contains(id)) break;  // of the next worker, or in disorder
        to[id] += values_of_row[k];
      }
    }
  }
};

// g_weights[id] += sum over rows of value * g_current[row], for the spikes of each list, which ascend. Workers share
// the rows of the gradient.
template <bool valued>
class RowsGradient : public poplar::MultiVertex {
 public:
  In<unsigned short> lists;                              // [rows, stride], records, ids of spikes ascending
  If<valued, In<float>> values;                          // [rows, capacity]
  In<float> g_current;                                   // [rows, neurons]
  InOut<float> g_weights;                                // [num_inputs + 1, neurons], the last row is scratch
  unsigned rows, stride, capacity, num_inputs, neurons;  // neurons: even

  void compute(unsigned worker) {
    for (unsigned row = 0; row < rows; ++row) {
      const List<unsigned short> list = {&lists[row * stride], capacity};
      const Range own = list.spikesOfWorker(worker);
      if (own.first >= own.last) continue;
      addToListedRows(ListedRows<float>{&g_weights[0], num_inputs, neurons}, list.ids(), own,
                      valuesOf<valued>(*this, row), &g_current[row * neurons]);
    }
  }
};

using namespace cycles;

// Of a row's entries, those that contribute.
template <bool valued, class V>
Slots usedEntries([[maybe_unused]] const V& vertex, [[maybe_unused]] unsigned row, unsigned spikes) {
  if constexpr (valued) {
    Slots used = 0;
    for (unsigned k = 0; k < spikes; ++k) used += vertex.values[row * vertex.capacity + k] != 0.0f ? 1U : 0U;
    return used;
  } else {
    return spikes;
  }
}

template <class W, bool valued>
std::uint64_t workerCycles(const RowsCurrent<W, valued>& vertex, unsigned worker) {
  Slots slots = entry(valued ? 8 : 6, false) + 6;  // its first row, and how far the next one lies
  for (unsigned row = worker; row < vertex.rows; row += vertex.numWorkers()) {
    const unsigned spikes = vertex.lists[row * vertex.stride + kKept];
    const Slots used = usedEntries<valued>(vertex, row, spikes);
    slots += currentRow(used, spikes - used, vertex.neurons, sizeof(W), valued);
  }
  return slots;
}

template <class W>
std::uint64_t workerCycles(const RowsDots<W>& vertex, unsigned worker) {
  Slots slots = entry(9, false);
  for (unsigned row = worker; row < vertex.rows; row += vertex.numWorkers()) {
    const unsigned listed = List<unsigned short>{&vertex.lists[row * vertex.stride], vertex.capacity}.listed();
    slots += 8 + kListedHeader + dotListedRows(listed, vertex.neurons, sizeof(W));
  }
  return slots;
}

template <bool valued>
std::uint64_t workerCycles(const RowsDense<valued>& vertex, unsigned worker) {
  const Range own = neuronsOfWorker(vertex.num_inputs, worker);
  Slots slots = entry(valued ? 7 : 6, false);
  for (unsigned row = 0; row < vertex.rows; ++row) {
    const List<unsigned short> list = {&vertex.lists[row * vertex.stride], vertex.capacity};
    const Range found = list.spikesOfWorker(worker);
    slots += 8 + kShareOfRow + kToRows + filled(own.count(), 4, vertex.num_inputs) +
             (larger(found.last, found.first) - found.first) * denseEntry(valued);
  }
  return slots;
}

template <bool valued>
std::uint64_t workerCycles(const RowsGradient<valued>& vertex, unsigned worker) {
  Slots slots = entry(valued ? 9 : 8, false);
  for (unsigned row = 0; row < vertex.rows; ++row) {
    const List<unsigned short> list = {&vertex.lists[row * vertex.stride], vertex.capacity};
    const Range found = list.spikesOfWorker(worker);
    slots += gradientRow(valued);
    if (found.first < found.last) slots += addToListedRows(found.count(), vertex.neurons, valued);
  }
  return slots;
}

SNNJAX_INSTANCES_OF_CHOICES(RowsCurrent, float)
SNNJAX_INSTANCES_OF_CHOICES(RowsCurrent, half)
SNNJAX_INSTANCES_OF_FLOATS(RowsDots)
SNNJAX_INSTANCES_OF_CHOICES(RowsDense)
SNNJAX_INSTANCES_OF_CHOICES(RowsGradient)

}  // namespace snnjax
