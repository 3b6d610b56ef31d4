// lif_network, forward: the codelets that advance all neurons of a tile by one step.
//
// A tile holds `neurons` own neurons of a layer with the columns of the weights that lead to them; workers share the
// samples of the batch. Layers run skewed in the same compute sets: a layer's own time is t = iteration - delay, and
// its vertices do nothing before its first step and after its last. Neurons with a second state have their own
// instances, so that plain LIF pays nothing for it.
#include "fields.hpp"
#include "listed_rows.hpp"
#include "neuron_rows.hpp"

namespace snnjax {

// A worker's samples in a step: advance(b, rows) up to the end of a sequence; past it they stay as they are.
template <class V, class Advance>
inline void forEachSample(V& vertex, unsigned worker, Advance&& advance) {
  const unsigned t = *vertex.iteration - vertex.delay;
  if (t >= vertex.num_steps) return;
  for (unsigned b = worker; b < vertex.batch; b += V::numWorkers()) {
    const NeuronRows<V> own(vertex, t, b, b);
    if (t < vertex.lengths[b]) {
      advance(b, own);
    } else {
      own.freeze();
    }
  }
}

// Input lists -> membranes: v = decay * reset(v) + gain * (sum of the spikes' rows + bias).
template <class W, class Id, bool has_second>
class LifForward : public poplar::MultiVertex {
 public:
  In<Id> lists;          // [batch, stride], records of the layer below (lists.hpp)
  In<W> weights;         // [num_inputs + 1, neurons], last row zeros
  In<float> bias;        // [neurons]
  In<float> decay;       // [neurons]
  In<float> gain;        // [neurons]
  In<float> threshold;   // [neurons]
  In<unsigned> lengths;  // [batch], steps of each sequence
  poplar::Input<unsigned> iteration;
  // [num_steps + 1, batch, neurons], row 0 before the first step; [batch, neurons] if no history is kept
  InOut<float> membranes;
  InOut<float> counts;  // [batch, neurons], true spikes so far
  Out<float> v;         // [batch, neurons], membranes for the selection; -inf past the end of a sequence
  unsigned num_steps, delay, batch, stride, capacity, num_inputs, neurons;
  unsigned char reset;  // enum Reset
  bool keep_history;
  // Of neurons with a second state.
  If<has_second, In<float>> second;  // [kSecondConstants, neurons], neuron.hpp
  If<has_second, InOut<float>> w;    // as the membranes, but for `keep_second` in place of `keep_history`
  If<has_second, Out<float>> raise;  // [batch, neurons], threshold_coupling * w; nothing unless it `raises` thresholds
  If<has_second, bool> keep_second, raises;
  static constexpr bool kHasSecond = has_second;

  bool compute(unsigned worker) {
    const ListedRows<const W> rows = {&weights[0], num_inputs, neurons};
    forEachSample(*this, worker, [&](unsigned b, const auto& own) {
      const List<Id> list = {&lists[b * stride], capacity};
      sumListedRows(rows, list.ids(), list.spikes(), Ones{},
                    [&](unsigned j, auto numbers, auto sum) { own.advance(j, numbers, sum); });
    });
    return true;
  }
};

// The same from currents that another vertex computed from dense or valued inputs.
template <bool has_second>
class LifUpdate : public poplar::MultiVertex {
 public:
  In<float> current;     // [batch, neurons], without the bias
  In<float> bias;        // [neurons]
  In<float> decay;       // [neurons]
  In<float> gain;        // [neurons]
  In<float> threshold;   // [neurons]
  In<unsigned> lengths;  // [batch], steps of each sequence
  poplar::Input<unsigned> iteration;
  // [num_steps + 1, batch, neurons], row 0 before the first step; [batch, neurons] if no history is kept
  InOut<float> membranes;
  InOut<float> counts;  // [batch, neurons], true spikes so far
  Out<float> v;         // [batch, neurons], membranes for the selection; -inf past the end of a sequence
  unsigned num_steps, delay, batch, neurons;
  unsigned char reset;  // enum Reset
  bool keep_history;
  // Of neurons with a second state.
  If<has_second, In<float>> second;  // [kSecondConstants, neurons], neuron.hpp
  If<has_second, InOut<float>> w;    // as the membranes, but for `keep_second` in place of `keep_history`
  If<has_second, Out<float>> raise;  // [batch, neurons], threshold_coupling * w; nothing unless it `raises` thresholds
  If<has_second, bool> keep_second, raises;
  static constexpr bool kHasSecond = has_second;

  bool compute(unsigned worker) {
    forEachSample(*this, worker, [&](unsigned b, const auto& own) {
      const float* const sums = &current[b * neurons];
      forEachNumber(neurons, [&](unsigned j, auto numbers) { own.advance(j, numbers, numbers.load(sums + j)); });
    });
    return true;
  }
};

// A recurrent layer: own lists of the step before, and a current from below that another vertex computed.
template <class W, class Id, bool has_second>
class LifRecurrentForward : public poplar::MultiVertex {
 public:
  In<Id> lists;          // [batch, stride], the layer's own records of the step before (lists.hpp)
  In<W> weights;         // [num_inputs + 1, neurons], recurrent ones, last row zeros; num_inputs: neurons of the layer
  In<float> current;     // [batch, neurons], without the bias
  In<float> first;       // [batch, neurons], what the spikes before the first step add to it in that step
  In<float> bias;        // [neurons]
  In<float> decay;       // [neurons]
  In<float> gain;        // [neurons]
  In<float> threshold;   // [neurons]
  In<unsigned> lengths;  // [batch], steps of each sequence
  poplar::Input<unsigned> iteration;
  // [num_steps + 1, batch, neurons], row 0 before the first step; [batch, neurons] if no history is kept
  InOut<float> membranes;
  InOut<float> counts;  // [batch, neurons], true spikes so far
  Out<float> v;         // [batch, neurons], membranes for the selection; -inf past the end of a sequence
  unsigned num_steps, delay, batch, stride, capacity, num_inputs, neurons;
  unsigned char reset;  // enum Reset
  bool keep_history;
  // Of neurons with a second state.
  If<has_second, In<float>> second;  // [kSecondConstants, neurons], neuron.hpp
  If<has_second, InOut<float>> w;    // as the membranes, but for `keep_second` in place of `keep_history`
  If<has_second, Out<float>> raise;  // [batch, neurons], threshold_coupling * w; nothing unless it `raises` thresholds
  If<has_second, bool> keep_second, raises;
  static constexpr bool kHasSecond = has_second;

  bool compute(unsigned worker) {
    const bool is_first = *iteration == delay;
    const ListedRows<const W> rows = {&weights[0], num_inputs, neurons};
    forEachSample(*this, worker, [&](unsigned b, const auto& own) {
      const unsigned i = b * neurons;
      const List<Id> list = {&lists[b * stride], capacity};
      sumListedRows(rows, list.ids(), is_first ? 0 : list.spikes(), Ones{}, [&](unsigned j, auto numbers, auto sum) {
        const auto recurrent = is_first ? numbers.load(&first[i + j]) : sum;
        own.advance(j, numbers, numbers.load(&current[i + j]) + recurrent);
      });
    });
    return true;
  }
};

// The leaky readout: v = decay * v + gain * (sum of the spikes' rows + bias), no threshold, no reset.
template <class W, class Id>
class LeakyForward : public poplar::MultiVertex {
 public:
  In<Id> lists;          // [batch, stride], records of the last layer
  In<W> weights;         // [num_inputs + 1, neurons], last row zeros
  In<float> bias;        // [neurons]
  In<float> decay;       // [neurons]
  In<float> gain;        // [neurons]
  In<unsigned> lengths;  // [batch], steps of each sequence
  poplar::Input<unsigned> iteration;
  // [num_steps + 1, batch, neurons], row 0 before the first step; [batch, neurons] if no history is kept
  InOut<float> membranes;
  unsigned num_steps, delay, batch, stride, capacity, num_inputs, neurons;
  bool keep_history;

  bool compute(unsigned worker) {
    const unsigned t = *iteration - delay, width = batch * neurons;
    if (t >= num_steps) return true;
    const ListedRows<const W> rows = {&weights[0], num_inputs, neurons};
    for (unsigned b = worker; b < batch; b += numWorkers()) {
      const float* const before = &membranes[historyOf(keep_history, t, width) + b * neurons];
      float* const after = &membranes[historyOf(keep_history, t + 1, width) + b * neurons];
      if (t >= lengths[b]) {
        for (unsigned j = 0; j < neurons; ++j) after[j] = before[j];
        continue;
      }
      const List<Id> list = {&lists[b * stride], capacity};
      sumListedRows(rows, list.ids(), list.spikes(), Ones{}, [&](unsigned j, auto numbers, auto sum) {
        const auto current = sum + numbers.load(&bias[j]);
        numbers.store(after + j, numbers.load(&decay[j]) * numbers.load(before + j) + numbers.load(&gain[j]) * current);
      });
    }
    return true;
  }
};

template class LifForward<float, unsigned short, false>;
template class LifForward<float, unsigned short, true>;
template class LifForward<float, int, false>;
template class LifForward<float, int, true>;
template class LifForward<half, unsigned short, false>;
template class LifForward<half, unsigned short, true>;
template class LifForward<half, int, false>;
template class LifForward<half, int, true>;
template class LifRecurrentForward<float, unsigned short, false>;
template class LifRecurrentForward<float, unsigned short, true>;
template class LifRecurrentForward<float, int, false>;
template class LifRecurrentForward<float, int, true>;
template class LifRecurrentForward<half, unsigned short, false>;
template class LifRecurrentForward<half, unsigned short, true>;
template class LifRecurrentForward<half, int, false>;
template class LifRecurrentForward<half, int, true>;
template class LifUpdate<false>;
template class LifUpdate<true>;
template class LeakyForward<float, unsigned short>;
template class LeakyForward<float, int>;
template class LeakyForward<half, unsigned short>;
template class LeakyForward<half, int>;

}  // namespace snnjax
