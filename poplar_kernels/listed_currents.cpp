// lif_network, forward: currents that reach neurons besides the lists that LifForward reads, one compute set earlier.
#include "fields.hpp"
#include "listed_rows.hpp"

namespace snnjax {

// current[b] = sum of values(b)[k] times the rows that the spikes of list b name.
template <class W, class Id, class V, class ValuesOf>
inline void sumLists(V& vertex, unsigned worker, ValuesOf&& values) {
  const unsigned t = *vertex.iteration - vertex.delay;
  if (t >= vertex.num_steps) return;
  const ListedRows<const W> rows = {&vertex.weights[0], vertex.num_inputs, vertex.neurons};
  for (unsigned b = worker; b < vertex.batch; b += V::numWorkers()) {
    if (t >= vertex.lengths[b]) continue;
    const List<Id> list = {&vertex.lists[b * vertex.stride], vertex.capacity};
    float* const sums = &vertex.current[b * vertex.neurons];
    sumListedRows(rows, list.ids(), list.spikes(), values(b),
                  [&](unsigned j, auto numbers, auto sum) { numbers.store(sums + j, sum); });
  }
}

// current[b] = sum of the rows that the spikes of list b name, for layers whose neurons also sum their own lists.
template <class W, class Id>
class ListedCurrent : public poplar::MultiVertex {
 public:
  In<Id> lists;          // [batch, stride], records of the layer below (lists.hpp)
  In<W> weights;         // [num_inputs + 1, neurons], last row zeros
  In<unsigned> lengths;  // [batch], steps of each sequence
  poplar::Input<unsigned> iteration;
  InOut<float> current;  // [batch, neurons], without the bias; stays as it is past the end of a sequence
  unsigned num_steps, delay, batch, stride, capacity, num_inputs, neurons;

  bool compute(unsigned worker) {
    sumLists<W, Id>(*this, worker, [](unsigned) { return Ones{}; });
    return true;
  }
};

// The same for lists with values: of events, of dense inputs, and of the spikes that a state carries, where one record
// of all neurons stands for all samples (stride 0). An entry of 0 costs its test alone.
template <class W, class Id>
class ValuedCurrent : public poplar::MultiVertex {
 public:
  In<Id> lists;          // [batch, stride], records, or one record for all samples (stride 0)
  In<float> values;      // [batch, capacity], 0: adds nothing whatever the weights
  In<W> weights;         // [num_inputs + 1, neurons], last row zeros
  In<unsigned> lengths;  // [batch], steps of each sequence
  poplar::Input<unsigned> iteration;
  InOut<float> current;  // [batch, neurons], without the bias; stays as it is past the end of a sequence
  unsigned num_steps, delay, batch, stride, capacity, num_inputs, neurons;

  bool compute(unsigned worker) {
    sumLists<W, Id>(*this, worker, [&](unsigned b) { return Values<float>{&values[b * capacity]}; });
    return true;
  }
};

template class ListedCurrent<float, unsigned short>;
template class ListedCurrent<float, int>;
template class ListedCurrent<half, unsigned short>;
template class ListedCurrent<half, int>;
template class ValuedCurrent<float, unsigned short>;
template class ValuedCurrent<float, int>;
template class ValuedCurrent<half, unsigned short>;
template class ValuedCurrent<half, int>;

}  // namespace snnjax
