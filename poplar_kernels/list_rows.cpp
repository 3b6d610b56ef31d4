// lif_network: products with the lists of all samples and steps of a block at once, a row for each; and those lists as
// dense rows, for the matrix unit.
#include "fields.hpp"
#include "listed_rows.hpp"

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

// current[row] = sum of the rows of weights that the spikes of its list name, times their values.
template <class W, class Id, bool valued>
class RowsCurrent : public poplar::MultiVertex {
 public:
  In<Id> lists;                  // [rows, stride], records of the layer below (lists.hpp)
  If<valued, In<float>> values;  // [rows, capacity], 0: adds nothing whatever the weights
  In<W> weights;                 // [num_inputs + 1, neurons], last row zeros
  Out<float> current;            // [rows, neurons], without the bias
  unsigned rows, stride, capacity, num_inputs, neurons;

  bool compute(unsigned worker) {
    const ListedRows<const W> matrix = {&weights[0], num_inputs, neurons};
    for (unsigned row = worker; row < rows; row += numWorkers()) {
      const List<Id> list = {&lists[row * stride], capacity};
      float* const sums = &current[row * neurons];
      sumListedRows(matrix, list.ids(), list.spikes(), valuesOf<valued>(*this, row),
                    [&](unsigned j, auto numbers, auto sum) { numbers.store(sums + j, sum); });
    }
    return true;
  }
};

// dots[row, k] = <weights[id], g_current[row]> of each listed id, 0 past them.
template <class W, class Id>
class RowsDots : public poplar::MultiVertex {
 public:
  In<Id> lists;         // [rows, stride], records of the layer below
  In<W> weights;        // [num_inputs + 1, neurons], last row zeros
  In<float> g_current;  // [rows, neurons]
  Out<float> dots;      // [rows, capacity]
  unsigned rows, stride, capacity, num_inputs, neurons;

  bool compute(unsigned worker) {
    const ListedRows<const W> matrix = {&weights[0], num_inputs, neurons};
    for (unsigned row = worker; row < rows; row += numWorkers()) {
      writeDots(matrix, List<Id>{&lists[row * stride], capacity}, &g_current[row * neurons], &dots[row * capacity]);
    }
    return true;
  }
};

// dense[row, id] = sum of the values of the spikes of a list that name `id`, 0 of others. Workers share the inputs of
// each row; lists ascend.
template <class Id, bool valued>
class RowsDense : public poplar::MultiVertex {
 public:
  In<Id> lists;                  // [rows, stride], records of the layer below
  If<valued, In<float>> values;  // [rows, capacity]
  Out<float> dense;              // [rows, num_inputs]
  unsigned rows, stride, capacity, num_inputs;

  bool compute(unsigned worker) {
    const Range own = shareOf(num_inputs, worker, 2);
    for (unsigned row = 0; row < rows; ++row) {
      float* const to = &dense[row * num_inputs];
      for (unsigned i = own.first; i < own.last; ++i) to[i] = 0.0f;
      const List<Id> list = {&lists[row * stride], capacity};
      const auto values_of_row = valuesOf<valued>(*this, row);
      for (unsigned k = numBelow(list.ids(), list.spikes(), own.first); k < list.spikes(); ++k) {
        const auto id = static_cast<unsigned>(list.ids()[k]);
        if (id - own.first >= own.last - own.first) break;  // of the next worker, or in disorder
        to[id] += values_of_row[k];
      }
    }
    return true;
  }
};

// g_weights[id] += sum over rows of value * g_current[row], for the spikes of each list, which ascend. Workers share
// the pairs of columns and, where these are few, the rows of the gradient.
template <class Id, bool valued>
class RowsGradient : public poplar::MultiVertex {
 public:
  In<Id> lists;                                          // [rows, stride], records, ids of spikes ascending
  If<valued, In<float>> values;                          // [rows, capacity]
  In<float> g_current;                                   // [rows, neurons]
  InOut<float> g_weights;                                // [num_inputs + 1, neurons], the last row is not touched
  unsigned rows, stride, capacity, num_inputs, neurons;  // neurons: even

  // What falls to a worker.
  struct Share {
    Range pairs, inputs;
    bool is_all;  // inputs: no search for the first one
  };

  Share shareOfWorker(unsigned worker) const {
    const unsigned pairs = neurons / 2, parts = workersOnPairs(pairs, capacity), groups = numWorkers() / parts;
    unsigned part = worker, group = 0;
    for (; part >= parts; part -= parts) ++group;
    return {shareAmong(parts, pairs, part), shareAmong(groups, num_inputs, group), groups == 1};
  }

  bool compute(unsigned worker) {
    const Share own = shareOfWorker(worker);
    for (unsigned row = 0; row < rows; ++row) {
      const List<Id> list = {&lists[row * stride], capacity};
      const unsigned first = own.is_all ? 0 : numBelow(list.ids(), list.spikes(), own.inputs.first);
      add(own, list.ids(), {first, list.spikes()}, row);
    }
    return true;
  }

 private:
  // The entries of a row, whose ids end before those of the next worker.
  void add(const Share& own, const Id* ids, Range entries, unsigned row) {
    const ListedRows<float> matrix = {&g_weights[0], num_inputs, neurons};
    const float* const vector = &g_current[row * neurons];
    const auto values = valuesOf<valued>(*this, row);
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
    unsigned pair = own.pairs.first;
    for (; pair + 4 <= own.pairs.last; pair += 4)
      addBlock<float2, 4>(matrix, ids, entries, own.inputs.last, values, vector, 2 * pair);
    for (; pair + 2 <= own.pairs.last; pair += 2)
      addBlock<float2, 2>(matrix, ids, entries, own.inputs.last, values, vector, 2 * pair);
    if (pair < own.pairs.last) addBlock<float2, 1>(matrix, ids, entries, own.inputs.last, values, vector, 2 * pair);
#else
    for (unsigned j = 2 * own.pairs.first; j < 2 * own.pairs.last; ++j)
      addBlock<float, 1>(matrix, ids, entries, own.inputs.last, values, vector, j);
#endif
  }
};

template class RowsCurrent<float, unsigned short, false>;
template class RowsCurrent<float, unsigned short, true>;
template class RowsCurrent<half, unsigned short, false>;
template class RowsCurrent<half, unsigned short, true>;
template class RowsDots<float, unsigned short>;
template class RowsDots<half, unsigned short>;
template class RowsDense<unsigned short, false>;
template class RowsDense<unsigned short, true>;
template class RowsGradient<unsigned short, false>;
template class RowsGradient<unsigned short, true>;

}  // namespace snnjax
