// lif_network, recurrent layers, backward: a step of the gradients of a tile's neurons, and of the spikes that its
// currents read.
#include "../lists/listed_rows.hpp"
#include "../vertex.hpp"
#include "../words.hpp"
#include "cycles.hpp"
#include "membrane_gradient.hpp"
#include "neuron_rows.hpp"

namespace snnjax {

// Where each own neuron stands in the list of each row, `capacity` if nowhere. Blocks of steps come from the last to
// the first: what the first row of one lists fired in the last step of the next.
class SlotsOfNeurons : public poplar::MultiVertex {
 public:
  // [batch, num_steps, stride], records (lists.hpp): that of a row lists the spikes of the step before
  In<unsigned short> lists;
  // [batch, num_steps + 1, neurons], the last row that of the block after this one: on entry its first row is there
  InOut<unsigned short> slots;
  unsigned num_steps, batch, stride, capacity, first_id, neurons;  // num_steps: of a block; neurons: even
  unsigned first_share, last_share;  // of the neurons of the layer (conventions.hpp), that hold these

  void compute(unsigned worker) {
    unsigned t = worker;
    for (unsigned b = 0; b < batch; ++b, t -= num_steps) {
      for (; t < num_steps; t += numWorkers()) find(b, t);
    }
  }

  // Among which own ones are.
  Range spikesOf(const List<unsigned short>& list) const {
    return {list.spikesOfWorker(first_share).first, list.spikesOfWorker(last_share).last};
  }

 private:
  void find(unsigned b, unsigned t) {
    unsigned short* const own = &slots[(b * (num_steps + 1) + t) * neurons];
    if (t == 0) copyRows(own + num_steps * neurons, own, neurons, neurons);
    fillRows(own, static_cast<unsigned short>(capacity), neurons, neurons);
    const List<unsigned short> list = {&lists[(b * num_steps + t) * stride], capacity};
    place(own, list, spikesOf(list));
    place(own, list, {list.spikes(), list.listed()});
  }

  void place(unsigned short* own, const List<unsigned short>& list, Range entries) const {
    for (unsigned k = entries.first; k < entries.last; ++k) {
      const unsigned j = static_cast<unsigned>(list.ids()[k]) - first_id;
      if (j < neurons) own[j] = static_cast<unsigned short>(k);
    }
  }
};

// The gradients of the currents of a step. Time runs backwards: a block's last step comes in iteration 0.
template <bool has_second, bool learns>
class LifRecurrentGradient : public poplar::MultiVertex {
 public:
  // [batch, num_steps, neurons], gradient of own listed spikes but through own currents, 0 where not listed
  In<float> g_spikes;
  In<unsigned short> slots;    // [batch, num_steps + 1, neurons], of SlotsOfNeurons, by the step after
  In<float> sums;              // [parts, batch, capacity], what the currents of the next step mean to the spikes
  In<float> g_counts;          // [batch, neurons], gradient of the true spike counts
  In<float> decay;             // [neurons]
  In<float> gain;              // [neurons]
  In<float> threshold;         // [neurons]
  In<float> second_threshold;  // [neurons]
  In<unsigned> lengths;        // [batch], steps of each sequence
  poplar::Input<unsigned> block;
  InOut<unsigned> iterations;            // [workers], each counts its own
  In<float> membranes;                   // [all steps + 1, batch, neurons], row t + 1 after step t
  InOut<float> g_v;                      // [batch, neurons], of the membrane after its reset, of the step after
  InOut<float> g_last;                   // [batch, neurons], gradient of the last membrane; zeroed once added
  Out<float> g_current;                  // [batch, num_steps, neurons], gain * g_v, 0 past the end
  InOut<float> g_bias;                   // [batch, neurons], sum of g_current over time
  If<learns, InOut<float>> g_decay;      // [batch, neurons], summed over time, as the two below
  If<learns, InOut<float>> g_threshold;  // [batch, neurons]
  If<learns, InOut<float>> g_gain;       // [batch, neurons]; 0 where no current can be recovered
  unsigned num_steps, batch, neurons, parts, capacity;  // num_steps: of a block
  unsigned char reset, surrogate;                       // enum Reset, enum Surrogate
  bool detach_reset;
  float slope;
  // Of neurons with a second state.
  If<has_second, In<float>> second;                 // [kSecondConstants, neurons], neuron.hpp
  If<has_second, In<float>> w;                      // as the membranes; nothing unless it `raises` thresholds
  If<has_second, InOut<float>> g_w;                 // as g_v
  If<has_second, InOut<float>> g_last_w;            // as g_last
  If<has_second && learns, InOut<float>> g_second;  // [kSecondConstants, batch, neurons], summed over time
  If<has_second, bool> raises;                      // a layer that learns reads `w` in any case
  static constexpr bool kHasSecond = has_second;

  void compute(unsigned worker) {
    const unsigned own_step = num_steps - 1 - iterations[worker]++;
    if (own_step >= num_steps) return;
    const unsigned t = *block * num_steps + own_step;
    forEachOwnPair(batch, neurons, worker, [&](unsigned b, unsigned j) {
      const unsigned i = b * neurons + j, at = (b * num_steps + own_step) * neurons + j;
      if (t >= lengths[b]) {
        Pair::store(&g_current[at], float2{});
        return;
      }
      const StateRow after = stateRow(*this, t + 1);
      if constexpr (has_second || learns) {
        const auto g = membraneGradient(*this, after, ofSpikes(b, at), i, j, at);
        if constexpr (learns) addConstantsGradients(*this, stateRow(*this, t), after, g, i, j);
      } else {
        addPlain(after.v, b, i, j, at);
      }
    });
  }

  // How many neurons of a pair are listed in a step, and whether their counts have gradients.
  unsigned listed(unsigned b, unsigned at) const {
    const unsigned short* const own = &slots[at + (b + 1) * neurons];
    return (own[0] < capacity ? 1 : 0) + (own[1] < capacity ? 1 : 0);
  }
  bool isCounted(unsigned i) const { return !areZero(&g_counts[i]); }

 private:
  // What membraneGradient does, for plain neurons: most have no gradient at their spike.
  void addPlain(const float* v, unsigned b, unsigned i, unsigned j, unsigned at)
    requires(!has_second && !learns)
  {
    auto g = Pair::load(&g_v[i]);
    if (!detach_reset || reset == Zero) {
      g = throughReset(g, Pair::load(v + i), Pair::load(&threshold[j]), reset, detach_reset, surrogate, slope).v;
    }
    g = Pair::load(&g_last[i]) + g;
    if (listed(b, at) > 0 || isCounted(i)) {
      g += throughSpike(*this, Pair::load(v + i), Pair::load(&threshold[j]), Pair::load(&second_threshold[j]),
                        ofSpikes(b, at), i);
    }
    const auto of_current = Pair::load(&gain[j]) * g;
    Pair::store(&g_last[i], float2{});
    Pair::store(&g_v[i], Pair::load(&decay[j]) * g);
    Pair::store(&g_current[at], of_current);
    Pair::store(&g_bias[i], Pair::load(&g_bias[i]) + of_current);
  }

  float2 ofSpikes(unsigned b, unsigned at) const {
    const unsigned slot = at + (b + 1) * neurons;
    return Pair::load(&g_spikes[at]) + float2{ofNeuron(b, slot), ofNeuron(b, slot + 1)};
  }
  float ofNeuron(unsigned b, unsigned at) const {
    const unsigned slot = slots[at];
    float sum = 0.0f;
    if (slot >= capacity) return sum;
    const unsigned next = batch * capacity;
    const float* of_part = &sums[b * capacity + slot];
    unsigned part = 0;
    const auto add = [&] {
      sum += *of_part;
      of_part += next;
    };
    for (; part + 4 <= parts; part += 4) add(), add(), add(), add();
    for (; part < parts; ++part) add();
    return sum;
  }
};

// dots[b, k] = <weights[id], g_current[b]> of each listed id: what the currents of a step mean to the spikes of the
// step before. Workers share the entries of each list.
template <class W>
class StepDots : public poplar::MultiVertex {
 public:
  In<unsigned short> lists;    // [batch, num_steps, stride], records: that of a row lists the spikes of the step before
  In<W> weights;               // [num_inputs + 1, neurons], last row zeros
  In<float> g_current;         // [batch, num_steps, neurons]
  Out<float> dots;             // [batch, capacity]; past the listed ones anything
  InOut<unsigned> iterations;  // [workers], each counts its own
  unsigned num_steps, batch, stride, capacity, num_inputs, neurons;  // num_steps: of a block

  void compute(unsigned worker) {
    const unsigned t = num_steps - 1 - iterations[worker]++;
    if (t >= num_steps) return;
    const ListedRows<const W> rows = {&weights[0], num_inputs, neurons};
    for (unsigned b = 0; b < batch; ++b) {
      const unsigned row = b * num_steps + t;
      const List<unsigned short> list = {&lists[row * stride], capacity};
      const Range own = quickShareOf(list.listed(), worker);
      float* const to = &dots[b * capacity + own.first];
      dotListedRows(rows, list.ids() + own.first, own.last - own.first, &g_current[row * neurons],
                    [&](unsigned k, float dot) { to[k] = dot; });
    }
  }
};

using namespace cycles;

std::uint64_t workerCycles(const SlotsOfNeurons& vertex, unsigned worker) {
  Slots slots = entry(10, false);
  unsigned t = worker;
  for (unsigned b = 0; b < vertex.batch; ++b, t -= vertex.num_steps) {
    for (; t < vertex.num_steps; t += vertex.numWorkers()) {
      const List<unsigned short> list = {&vertex.lists[(b * vertex.num_steps + t) * vertex.stride], vertex.capacity};
      const Range spikes = vertex.spikesOf(list);
      const unsigned width = vertex.neurons;
      slots += kSlotsRow + kToRows + filled(width, 2, width) + (t == 0 ? kToRows + moved(width, 2, width) : 0) +
               (larger(spikes.last, spikes.first) - spikes.first + list.listed() - list.spikes()) * kSlotsEntry;
      for (unsigned j = 0; j < vertex.neurons; ++j) {
        const unsigned slot = vertex.slots[(b * (vertex.num_steps + 1) + t) * vertex.neurons + j];
        slots += slot < vertex.capacity ? kOwnEntry : 0;
      }
    }
  }
  return slots;
}

template <bool has_second, bool learns>
std::uint64_t workerCycles(const LifRecurrentGradient<has_second, learns>& vertex, unsigned worker) {
  const unsigned own_step = vertex.num_steps - vertex.iterations[worker];
  if (own_step >= vertex.num_steps) return kIdle + kCounted;
  const unsigned t = *vertex.block * vertex.num_steps + own_step;
  const Slots inside = (learns ? constantsGradient(vertex) : membraneGradient(vertex)) + secondGradientOf(vertex) +
                       (has_second && learns ? kSecondConstantsGradient : 0) + kSlotsTests;
  Slots slots = entry((has_second ? 29 : 24) + (learns ? 4 : 0), false) + kCounted;
  forEachOwnPair(vertex.batch, vertex.neurons, worker, [&](unsigned b, unsigned j) {
    const bool ended = t >= vertex.lengths[b], counted = vertex.isCounted(b * vertex.neurons + j);
    const unsigned listed = vertex.listed(b, (b * vertex.num_steps + own_step) * vertex.neurons + j);
    const Slots sums = listed * (kListedNeuron + vertex.parts / 4 * kFourParts + vertex.parts % 4 * kListedPart);
    if constexpr (has_second || learns) {
      slots += kScanNumber + kScanStep + (ended ? 1 : inside + sums);
    } else {
      const Slots active = listed > 0 || counted ? activeRecurrent(vertex.surrogate, counted) : 0;
      slots += ended ? kPlainFrozen : kPlainRecurrent + plainReset(vertex) + active + sums;
    }
  });
  return slots;
}

template <class W>
std::uint64_t workerCycles(const StepDots<W>& vertex, unsigned worker) {
  const unsigned t = vertex.num_steps - vertex.iterations[worker];
  if (t >= vertex.num_steps) return kIdle + kCounted;
  Slots slots = entry(11, false) + kCounted;
  for (unsigned b = 0; b < vertex.batch; ++b) {
    const List<unsigned short> list = {&vertex.lists[(b * vertex.num_steps + t) * vertex.stride], vertex.capacity};
    const Range own = quickShareOf(list.listed(), worker);
    slots += 12 + kListedHeader + dotListedRows(own.count(), vertex.neurons, sizeof(W));
  }
  return slots;
}

SNNJAX_INSTANCES_OF_CHOICES(LifRecurrentGradient, false)
SNNJAX_INSTANCES_OF_CHOICES(LifRecurrentGradient, true)
SNNJAX_INSTANCES_OF_FLOATS(StepDots)

}  // namespace snnjax
