// lif_network, backward: from lists to the gradients of weights and of the lists below.
#include "fields.hpp"
#include "listed_rows.hpp"

namespace snnjax {

// g_weights[id] += values(b)[k] * g_current[b] for the spikes of each list. Workers share the rows of the gradient, so
// no two write the same row; each finds its first id in the ascending list by bisection and continues to the first that
// is not its own.
template <class Id, class V, class ValuesOf>
inline void addToOwnRows(V& vertex, unsigned worker, ValuesOf&& values) {
  if (*vertex.iteration - vertex.delay >= vertex.num_steps) return;
  const ListedRows<float> rows = {&vertex.g_weights[0], vertex.num_inputs, vertex.neurons};
  const Range own = shareOf(vertex.num_inputs, worker);
  if (own.first == own.last) return;
  for (unsigned b = 0; b < vertex.batch; ++b) {
    const List<Id> list = {&vertex.lists[b * vertex.stride], vertex.capacity};
    const Range entries = {numBelow(list.ids(), list.spikes(), own.first), list.spikes()};
    addToListedRows(rows, list.ids(), entries, own.last, values(b), &vertex.g_current[b * vertex.neurons]);
  }
}

// The weight gradient of a tile's neurons: g_weights[id] += g_current[b].
template <class Id>
class ListedRowsGradient : public poplar::MultiVertex {
 public:
  In<Id> lists;            // [batch, stride], records of the layer below at time t, spikes ascending (lists.hpp)
  In<float> g_current;     // [batch, neurons], of LifBackward
  InOut<float> g_weights;  // [num_inputs + 1, neurons], the last row is not touched
  poplar::Input<unsigned> iteration;
  unsigned num_steps, delay, batch, stride, capacity, num_inputs, neurons;

  bool compute(unsigned worker) {
    addToOwnRows<Id>(*this, worker, [](unsigned) { return Ones{}; });
    return true;
  }
};

// The same for lists with values: g_weights[id] += value * g_current[b].
template <class Id>
class ValuedRowsGradient : public poplar::MultiVertex {
 public:
  In<Id> lists;            // [batch, stride], records, ids ascending; or one record for all samples (stride 0)
  In<float> values;        // [batch, capacity]
  In<float> g_current;     // [batch, neurons]
  InOut<float> g_weights;  // [num_inputs + 1, neurons], the last row is not touched
  poplar::Input<unsigned> iteration;
  unsigned num_steps, delay, batch, stride, capacity, num_inputs, neurons;

  bool compute(unsigned worker) {
    addToOwnRows<Id>(*this, worker, [&](unsigned b) { return Values<float>{&values[b * capacity]}; });
    return true;
  }
};

// Partial dot products alone: for recurrent weights, whose membrane gradient comes from another vertex.
template <class W, class Id>
class ListedDots : public poplar::MultiVertex {
 public:
  In<Id> lists;         // [batch, stride], records of the layer below at time t
  In<W> weights;        // [num_inputs + 1, neurons], last row zeros
  In<float> g_current;  // [batch, neurons]
  Out<float> dots;      // [batch, capacity], <weights[id, own], g_current> of each listed id, 0 past them
  poplar::Input<unsigned> iteration;
  unsigned num_steps, delay, batch, stride, capacity, num_inputs, neurons;

  bool compute(unsigned worker) {
    if (*iteration - delay >= num_steps) return true;
    const ListedRows<const W> rows = {&weights[0], num_inputs, neurons};
    for (unsigned b = worker; b < batch; b += numWorkers()) {
      writeDots(rows, List<Id>{&lists[b * stride], capacity}, &g_current[b * neurons], &dots[b * capacity]);
    }
    return true;
  }
};

// The dense form of lists and their values, at the home of the lists: 0 except at the listed ids. Rows are laid out in
// blocks, one for each tile that takes them. Both groups of a list ascend, so that each worker finds the ids of its
// blocks by bisection. Time runs backwards; outside of it everything is 0.
template <class Id>
class ScatterList : public poplar::MultiVertex {
 public:
  In<Id> list;       // [num_steps, rows, stride], the records of all steps
  In<float> values;  // [rows, capacity]
  Out<float> row;    // [blocks, rows, columns]: id i lies in block i / columns
  poplar::Input<unsigned> iteration;
  unsigned rows, stride, capacity, columns, num_neurons, num_steps,
      delay;  // num_neurons: blocks * columns

  bool compute(unsigned worker) {
    const unsigned t = num_steps - 1 - (*iteration - delay), block_size = rows * columns;
    const Range blocks = shareOf(num_neurons / columns, worker, block_size % 2 == 0 ? 1 : 2);
    for (unsigned i = blocks.first * block_size; i < blocks.last * block_size; ++i) row[i] = 0.0f;
    if (t >= num_steps) return true;
    const Range own = {blocks.first * columns, blocks.last * columns};
    for (unsigned b = 0; b < rows; ++b) {
      const List<Id> from = {&list[(t * rows + b) * stride], capacity};
      const unsigned spikes = from.spikes();
      place(b, from.ids(), Range{0, spikes}, own);
      place(b, from.ids(), Range{spikes, from.listed()}, own);
    }
    return true;
  }

 private:
  // The entries of one ascending group, as far as their ids lie in `own`.
  void place(unsigned b, const Id* ids, Range group, Range own) {
    const Range entries = entriesWithin(ids + group.first, group.last - group.first, own);
    const float inverse = 1.0f / static_cast<float>(columns);
    for (unsigned k = group.first + entries.first; k < group.first + entries.last; ++k) {
      const auto id = static_cast<unsigned>(ids[k]);
      if (id - own.first >= own.last - own.first) continue;  // ids in disorder
      const unsigned block = quotient(id, columns, inverse);
      row[(block * rows + b) * columns + id - block * columns] = values[b * capacity + k];
    }
  }

  // a / b without a division of integers, which a tile has only in software.
  static unsigned quotient(unsigned a, unsigned b, float inverse) {
    unsigned q = static_cast<unsigned>(static_cast<float>(a) * inverse);
    while (q * b > a) --q;
    while (a - q * b >= b) ++q;
    return q;
  }
};

template class ListedRowsGradient<unsigned short>;
template class ListedRowsGradient<int>;
template class ValuedRowsGradient<unsigned short>;
template class ValuedRowsGradient<int>;
template class ListedDots<float, unsigned short>;
template class ListedDots<float, int>;
template class ListedDots<half, unsigned short>;
template class ListedDots<half, int>;
template class ScatterList<unsigned short>;
template class ScatterList<int>;

}  // namespace snnjax
