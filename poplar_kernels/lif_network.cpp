// lif_network, forward: the codelets that advance all neurons of a tile by one step.
//
// A tile holds `neurons` own neurons of a layer with the columns of the weights that lead to them; workers share the
// samples of the batch. Layers run skewed in the same compute sets: a layer's own time is t = iteration - delay, and
// its vertices do nothing before its first step and after its last.
#include "fields.hpp"
#include "listed_rows.hpp"
#include "neuron.hpp"

namespace snnjax {

constexpr float kNeverListed = -__builtin_inff();  // exceeds no threshold

// The rows [neurons] of one sample and the constants of its neurons.
struct NeuronRows {
  const float *bias, *decay, *gain, *threshold, *v_before;
  float *v_after, *counts, *v;
  unsigned char reset;

  // v = decay * u + gain * current, for the neurons from `j`; the sum comes without the bias.
  template <class Of, class N>
  void advance(unsigned j, Of, N sum) const {
    const N v_old = Of::load(v_before + j), limit = Of::load(threshold + j);
    const N u = resetMembrane(v_old, fires(v_old, limit), limit, reset);
    const N v_new = Of::load(decay + j) * u + Of::load(gain + j) * (sum + Of::load(bias + j));
    Of::store(v_after + j, v_new);
    Of::store(v + j, v_new);
    Of::store(counts + j, Of::load(counts + j) + fires(v_new, limit));
  }

  // Behind the end of a sequence.
  void freeze(unsigned neurons) const {
    for (unsigned j = 0; j < neurons; ++j) {
      v_after[j] = v_before[j];
      v[j] = kNeverListed;
    }
  }
};

// Element of row t of a history, or of its only row where none is kept.
inline unsigned historyOf(bool keep_history, unsigned t, unsigned width) { return keep_history ? t * width : 0; }

// Input lists -> membranes: v = decay * reset(v) + gain * (sum of the spikes' rows + bias).
template <class W, class Id>
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
  Out<float> v;         // [batch, neurons], membranes for the selection; -inf behind the end of a sequence
  unsigned num_steps, delay, batch, stride, capacity, num_inputs, neurons;
  unsigned char reset;  // enum Reset
  bool keep_history;

  bool compute(unsigned worker) {
    const unsigned t = *iteration - delay, width = batch * neurons;
    if (t >= num_steps) return true;
    const ListedRows<const W> rows = {&weights[0], num_inputs, neurons};
    float* const before = &membranes[historyOf(keep_history, t, width)];
    float* const after = &membranes[historyOf(keep_history, t + 1, width)];
    for (unsigned b = worker; b < batch; b += numWorkers()) {
      const unsigned first = b * neurons;
      const NeuronRows own = {&bias[0],      &decay[0],      &gain[0],  &threshold[0], before + first,
                              after + first, &counts[first], &v[first], reset};
      if (t >= lengths[b]) {
        own.freeze(neurons);
        continue;
      }
      const List<Id> list = {&lists[b * stride], capacity};
      sumListedRows(rows, list.ids(), list.spikes(), Ones{},
                    [&](unsigned j, auto numbers, auto sum) { own.advance(j, numbers, sum); });
    }
    return true;
  }
};

// The same from currents that another vertex made of dense or valued inputs.
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
  Out<float> v;         // [batch, neurons], membranes for the selection; -inf behind the end of a sequence
  unsigned num_steps, delay, batch, neurons;
  unsigned char reset;  // enum Reset
  bool keep_history;

  bool compute(unsigned worker) {
    const unsigned t = *iteration - delay, width = batch * neurons;
    if (t >= num_steps) return true;
    float* const before = &membranes[historyOf(keep_history, t, width)];
    float* const after = &membranes[historyOf(keep_history, t + 1, width)];
    for (unsigned b = worker; b < batch; b += numWorkers()) {
      const unsigned first = b * neurons;
      const NeuronRows own = {&bias[0],      &decay[0],      &gain[0],  &threshold[0], before + first,
                              after + first, &counts[first], &v[first], reset};
      if (t >= lengths[b]) {
        own.freeze(neurons);
        continue;
      }
      const float* const sums = &current[first];
      forEachNumber(neurons, [&](unsigned j, auto numbers) { own.advance(j, numbers, numbers.load(sums + j)); });
    }
    return true;
  }
};

// A recurrent layer: own lists of the step before, and a current from below that another vertex made.
template <class W, class Id>
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
  Out<float> v;         // [batch, neurons], membranes for the selection; -inf behind the end of a sequence
  unsigned num_steps, delay, batch, stride, capacity, num_inputs, neurons;
  unsigned char reset;  // enum Reset
  bool keep_history;

  bool compute(unsigned worker) {
    const unsigned t = *iteration - delay, width = batch * neurons;
    if (t >= num_steps) return true;
    const ListedRows<const W> rows = {&weights[0], num_inputs, neurons};
    float* const before = &membranes[historyOf(keep_history, t, width)];
    float* const after = &membranes[historyOf(keep_history, t + 1, width)];
    for (unsigned b = worker; b < batch; b += numWorkers()) {
      const unsigned i = b * neurons;
      const NeuronRows own = {&bias[0],  &decay[0],  &gain[0], &threshold[0], before + i,
                              after + i, &counts[i], &v[i],    reset};
      if (t >= lengths[b]) {
        own.freeze(neurons);
        continue;
      }
      const List<Id> list = {&lists[b * stride], capacity};
      sumListedRows(rows, list.ids(), t == 0 ? 0 : list.spikes(), Ones{}, [&](unsigned j, auto numbers, auto sum) {
        const auto recurrent = t == 0 ? numbers.load(&first[i + j]) : sum;
        own.advance(j, numbers, numbers.load(&current[i + j]) + recurrent);
      });
    }
    return true;
  }
};

// The leaky read-out: v = decay * v + gain * (sum of the spikes' rows + bias), no threshold, no reset.
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

template class LifForward<float, unsigned short>;
template class LifForward<float, int>;
template class LifForward<half, unsigned short>;
template class LifForward<half, int>;
template class LifRecurrentForward<float, unsigned short>;
template class LifRecurrentForward<float, int>;
template class LifRecurrentForward<half, unsigned short>;
template class LifRecurrentForward<half, int>;
template class LeakyForward<float, unsigned short>;
template class LeakyForward<float, int>;
template class LeakyForward<half, unsigned short>;
template class LeakyForward<half, int>;

}  // namespace snnjax
