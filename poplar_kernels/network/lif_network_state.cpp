// lif_network: what a state carries from call to call: the last spikes of a recurrent layer and their gradient, the
// gradients of the first states. Each runs once, outside of the loops over time.
#include "../lists/lists.hpp"
#include "../words.hpp"
#include "cycles.hpp"
#include "membrane_gradient.hpp"

namespace snnjax {

// The records of all steps at a home, and the end of each sequence.
struct LastRecord {
  const unsigned short* history;  // [num_steps, rows, stride]
  unsigned rows, stride, capacity, num_steps;

  // Of sequence `b`, which has `steps` > 0 steps.
  List<unsigned short> of(unsigned b, unsigned steps) const {
    return {history + ((smaller(steps, num_steps) - 1) * rows + b) * stride, capacity};
  }
};

// Dense rows of the listed spikes of each sequence's last step.
class LastSpikes : public poplar::MultiVertex {
 public:
  In<unsigned short> list;  // [num_steps, rows, stride], records
  In<unsigned> lengths;     // [rows], steps of each sequence
  // [rows, num_neurons]; on entry the spikes before the first step, which stay those of a sequence without steps
  InOut<float> last;
  unsigned rows, stride, capacity, num_neurons, num_steps;

  void compute(unsigned worker) {
    const LastRecord records = {&list[0], rows, stride, capacity, num_steps};
    for (unsigned b = worker; b < rows; b += numWorkers()) {
      if (lengths[b] == 0) continue;
      float* const row = &last[b * num_neurons];
      fillRows(row, 0.0f, num_neurons, num_neurons);
      const List<unsigned short> own = records.of(b, lengths[b]);
      for (unsigned k = 0; k < own.spikes(); ++k) {
        const auto id = static_cast<unsigned>(own.ids()[k]);
        if (id < num_neurons) row[id] = 1.0f;
      }
    }
  }
};

// Where the gradient of the last spikes goes: to the neurons that the last step lists.
class LastSpikesGradient : public poplar::MultiVertex {
 public:
  In<unsigned short> list;  // [num_steps, rows, stride], records
  In<unsigned> lengths;     // [rows], steps of each sequence
  // [rows, num_neurons], of the last spikes; what is left are those before the first step of sequences without steps
  InOut<float> g;
  Out<float> g_listed;  // [rows, num_neurons], 0 where not listed
  unsigned rows, stride, capacity, num_neurons, num_steps;

  void compute(unsigned worker) {
    const LastRecord records = {&list[0], rows, stride, capacity, num_steps};
    for (unsigned b = worker; b < rows; b += numWorkers()) {
      const unsigned first = b * num_neurons;
      fillRows(&g_listed[first], 0.0f, num_neurons, num_neurons);
      if (lengths[b] == 0) continue;
      const List<unsigned short> own = records.of(b, lengths[b]);
      for (unsigned k = 0; k < own.listed(); ++k) {
        const auto id = static_cast<unsigned>(own.ids()[k]);
        if (id < num_neurons) g_listed[first + id] = g[first + id];
      }
      fillRows(&g[first], 0.0f, num_neurons, num_neurons);
    }
  }
};

// From the gradient of the last spikes to those of the last states and of the threshold.
template <bool has_second>
class LifLastGradient : public poplar::MultiVertex {
 public:
  In<float> g_spikes;        // [batch, neurons], of the last step's listed spikes
  In<float> threshold;       // [neurons]
  In<float> membranes;       // [batch, neurons], after the last step
  InOut<float> g_last;       // [batch, neurons], gradient of the last membrane, is accumulated
  InOut<float> g_threshold;  // [batch, neurons], is accumulated
  unsigned batch, neurons;
  unsigned char surrogate;  // enum Surrogate
  float slope;
  // Of neurons whose second state raises their threshold; of the others spikes are none of its.
  If<has_second, In<float>> second;         // [kSecondConstants, neurons], neuron.hpp
  If<has_second, In<float>> w;              // [batch, neurons], after the last step
  If<has_second, InOut<float>> g_last_w;    // [batch, neurons], gradient of the last second state, is accumulated
  If<has_second, InOut<float>> g_coupling;  // [batch, neurons], of threshold_coupling, is accumulated
  static constexpr bool kHasSecond = has_second, raises = true;

  void compute(unsigned worker) {
    forEachOwnPair(batch, neurons, worker, [&](unsigned b, unsigned j) {
      const unsigned i = b * neurons + j;
      const StateRow states = stateRow(*this, 0);
      const auto x = Pair::load(states.v + i) - raisedThreshold(*this, states, i, j);
      const auto g = maskedProduct(Pair::load(&g_spikes[i]), surrogateDerivative(x, surrogate, slope));
      Pair::store(&g_last[i], Pair::load(&g_last[i]) + g);
      Pair::store(&g_threshold[i], Pair::load(&g_threshold[i]) - g);
      if constexpr (has_second) {
        const auto coupling = SecondOf(*this, j)[ThresholdCoupling];
        Pair::store(&g_last_w[i], Pair::load(&g_last_w[i]) - coupling * g);
        Pair::store(&g_coupling[i], Pair::load(&g_coupling[i]) - g * Pair::load(states.w + i));
      }
    });
  }
};

// The gradients of the first states, after the step t = 0: what came through the reset of that step, and what came
// directly where there was no step. Runs once, after the loop over time.
template <bool has_second>
class LifFirstGradient : public poplar::MultiVertex {
 public:
  In<float> g_v;             // [batch, neurons], gradient of the membrane after its reset, of the first step
  In<float> g_last;          // [batch, neurons], gradient of the last membrane, the part not yet added
  In<float> threshold;       // [neurons]
  In<float> membranes;       // [batch, neurons], before the first step: row 0 of the history
  Out<float> g_first;        // [batch, neurons]
  InOut<float> g_threshold;  // [batch, neurons], the share of the first reset is added
  unsigned batch, neurons;
  unsigned char reset, surrogate;  // enum Reset, enum Surrogate
  bool detach_reset;
  float slope;
  // Of neurons with a second state.
  If<has_second, In<float>> second;         // [kSecondConstants, neurons], neuron.hpp
  If<has_second, In<float>> w;              // [batch, neurons], before the first step
  If<has_second, In<float>> g_w;            // [batch, neurons], gradient of the second state of the first step
  If<has_second, In<float>> g_last_w;       // [batch, neurons], of the last one, the part not yet added
  If<has_second, Out<float>> g_first_w;     // [batch, neurons]
  If<has_second, InOut<float>> g_coupling;  // [batch, neurons], of threshold_coupling, is accumulated
  static constexpr bool kHasSecond = has_second, raises = true;

  void compute(unsigned worker) {
    forEachOwnPair(batch, neurons, worker, [&](unsigned b, unsigned j) {
      const unsigned i = b * neurons + j;
      const StateRow states = stateRow(*this, 0);
      const auto v = Pair::load(states.v + i), limit = raisedThreshold(*this, states, i, j);
      auto g = throughReset(Pair::load(&g_v[i]), v, limit, reset, detach_reset, surrogate, slope);
      if constexpr (has_second) {
        const SecondOf own(*this, j);
        const auto g_next = Pair::load(&g_w[i]);
        const auto through_spike = maskedProduct(own[WJump] * g_next, surrogateDerivative(v - limit, surrogate, slope));
        g.v += through_spike + own[WMembrane] * g_next;
        g.threshold -= through_spike;
        const auto g_own = Pair::load(&g_last_w[i]) + own[WDecay] * g_next + own[ThresholdCoupling] * g.threshold;
        Pair::store(&g_first_w[i], g_own);
        Pair::store(&g_coupling[i], Pair::load(&g_coupling[i]) + g.threshold * Pair::load(states.w + i));
      }
      Pair::store(&g_first[i], Pair::load(&g_last[i]) + g.v);
      Pair::store(&g_threshold[i], Pair::load(&g_threshold[i]) + g.threshold);
    });
  }
};

using namespace cycles;

// The sequences of a worker: each(list) counts the work on the last record.
template <class V, class Each>
Slots lastRecords(const V& vertex, unsigned worker, unsigned fields, Slots without_steps, Each&& each) {
  const LastRecord records = {&vertex.list[0], vertex.rows, vertex.stride, vertex.capacity, vertex.num_steps};
  Slots slots = entry(fields, false);
  for (unsigned b = worker; b < vertex.rows; b += V::numWorkers()) {
    const unsigned steps = vertex.lengths[b];
    slots += kLastRecord + (steps == 0 ? without_steps : kRecordHeader + each(records.of(b, steps)));
  }
  return slots;
}

std::uint64_t workerCycles(const LastSpikes& vertex, unsigned worker) {
  const Slots dense = kToRows + filled(vertex.num_neurons, sizeof(float), vertex.num_neurons);
  return lastRecords(vertex, worker, 8, 0,
                     [&](List<unsigned short> list) { return dense + list.spikes() * kLastSpike; });
}

std::uint64_t workerCycles(const LastSpikesGradient& vertex, unsigned worker) {
  const Slots dense = kToRows + filled(vertex.num_neurons, sizeof(float), vertex.num_neurons);
  return lastRecords(vertex, worker, 9, dense,
                     [&](List<unsigned short> list) { return 2 * dense + list.listed() * kLastGradient; });
}

template <bool has_second>
std::uint64_t workerCycles(const LifLastGradient<has_second>& vertex, unsigned worker) {
  const Slots each = lastGradient(vertex.surrogate) + (has_second ? kLastSecondGradient : 0);
  return entry(has_second ? 13 : 9, false) + 6 + ownPairs(vertex, worker, [&](unsigned, unsigned) { return each; });
}

template <bool has_second>
std::uint64_t workerCycles(const LifFirstGradient<has_second>& vertex, unsigned worker) {
  const Slots each = firstGradient(vertex) + (has_second ? firstSecondGradient(vertex) : 0);
  return entry(has_second ? 18 : 12, false) + 8 + ownPairs(vertex, worker, [&](unsigned, unsigned) { return each; });
}

SNNJAX_INSTANCES_OF_CHOICES(LifFirstGradient)
SNNJAX_INSTANCES_OF_CHOICES(LifLastGradient)

}  // namespace snnjax
