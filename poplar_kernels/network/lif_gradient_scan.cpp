// lif_network without recurrent layers, backward: neurons over a block of steps, from the last to the first. Workers
// share the neurons of all samples, in pairs.
#include "cycles.hpp"
#include "membrane_gradient.hpp"

namespace snnjax {

// The gradients of the currents of a block; where the layer `learns`, those of its constants besides.
template <bool has_second, bool learns>
class LifGradientScan : public poplar::MultiVertex {
 public:
  In<float> g_spikes;  // [batch, num_steps, neurons], gradient of own listed spikes, 0 where not listed
  In<float> g_counts;  // [batch, neurons], gradient of the true spike counts
  In<float> decay, gain, threshold, second_threshold;  // [neurons]
  In<unsigned> lengths;                                // [batch], steps of each sequence
  poplar::Input<unsigned> block;
  In<float> membranes;   // [all steps + 1, batch, neurons], row t + 1 after step t
  InOut<float> g_v;      // [batch, neurons], of the membrane after its reset, of the step after
  InOut<float> g_last;   // [batch, neurons], gradient of the last membrane; zeroed once added
  Out<float> g_current;  // [batch, num_steps, neurons], gain * g_v, 0 past the end
  InOut<float> g_bias;   // [batch, neurons], sum of g_current over time
  // [batch, neurons], summed over time; of the gain 0 where no current can be recovered
  If<learns, InOut<float>> g_decay, g_threshold, g_gain;
  unsigned num_steps, batch, neurons;  // num_steps: of a block
  unsigned char reset, surrogate;      // enum Reset, enum Surrogate
  bool detach_reset;
  float slope;
  If<!has_second && !learns, bool> starts;  // from a gradient and a sum of 0, which nobody has stored
  // Of neurons with a second state.
  If<has_second, In<float>> second;                 // [kSecondConstants, neurons], neuron.hpp
  If<has_second, In<float>> w;                      // as the membranes; nothing unless it `raises` thresholds
  If<has_second, InOut<float>> g_w;                 // as g_v
  If<has_second, InOut<float>> g_last_w;            // as g_last
  If<has_second && learns, InOut<float>> g_second;  // [kSecondConstants, batch, neurons], summed over time
  If<has_second, bool> raises;                      // a layer that learns reads `w` in any case
  static constexpr bool kHasSecond = has_second;

  void compute(unsigned worker) {
    const unsigned before = *block * num_steps;
    forEachOwnPair(batch, neurons, worker, [&](unsigned b, unsigned j) {
      const unsigned first = b * num_steps * neurons + j, inside = stepsInside(lengths[b], before, num_steps);
      for (unsigned t = num_steps; t-- > inside;) Pair::store(&g_current[first + t * neurons], float2{});
      if constexpr (has_second || learns) {
        for (unsigned t = inside; t-- > 0;) addStep(t, b, j);
      } else {
        addSteps(inside, b, j);
      }
    });
  }

  // Whether no gradient comes to the spike of a step.
  bool isQuiet(unsigned t, unsigned b, unsigned j, bool counted) const {
    if (!areZero(&g_spikes[(b * num_steps + t) * neurons + j])) return false;
    return !counted || isZero(fires(Pair::load(after(t) + b * neurons + j), Pair::load(&second_threshold[j])));
  }
  bool isCounted(unsigned b, unsigned j) const { return !areZero(&g_counts[b * neurons + j]); }

 private:
  // The membranes after a step of the block.
  const float* after(unsigned t) const { return &membranes[(*block * num_steps + t + 1) * batch * neurons]; }

  void addStep(unsigned t, unsigned b, unsigned j) {
    const unsigned i = b * neurons + j, at = (b * num_steps + t) * neurons + j, row = *block * num_steps + t;
    const StateRow states = stateRow(*this, row + 1);
    const auto g = membraneGradient(*this, states, Pair::load(&g_spikes[at]), i, j, at);
    if constexpr (learns) addConstantsGradients(*this, stateRow(*this, row), states, g, i, j);
  }

  // The same for plain neurons, with what they carry in registers. Most steps have no gradient at their spike.
  void addSteps(unsigned inside, unsigned b, unsigned j)
    requires(!has_second && !learns)
  {
    const unsigned i = b * neurons + j;
    const bool counted = isCounted(b, j), passes = detach_reset && reset != Zero;
    const auto own_decay = Pair::load(&decay[j]), own_gain = Pair::load(&gain[j]);
    const float2 zero = {};
    auto g = starts ? zero : Pair::load(&g_v[i]), sum = starts ? zero : Pair::load(&g_bias[i]),
         last = Pair::load(&g_last[i]);
    const auto step = [&](unsigned t) {
      const unsigned at = (b * num_steps + t) * neurons + j;
      if (!passes) {
        g = throughReset(g, Pair::load(after(t) + i), Pair::load(&threshold[j]), reset, detach_reset, surrogate, slope)
                .v;
      }
      g = last + g;
      last = zero;
      if (!isQuiet(t, b, j, counted)) {
        g = g + throughSpike(*this, Pair::load(after(t) + i), Pair::load(&threshold[j]),
                             Pair::load(&second_threshold[j]), Pair::load(&g_spikes[at]), i);
      }
      const auto of_current = own_gain * g;
      Pair::store(&g_current[at], of_current);
      sum = sum + of_current;
      g = own_decay * g;
    };
    unsigned t = inside;
    for (; t >= 2; t -= 2) {  // two a turn
      step(t - 1);
      step(t - 2);
    }
    if (t > 0) step(0);
    Pair::store(&g_v[i], g);
    Pair::store(&g_bias[i], sum);
    Pair::store(&g_last[i], last);
  }
};

// The leaky readout: g_v = g_output + decay * g_v of the step after.
template <bool learns>
class LeakyGradientScan : public poplar::MultiVertex {
 public:
  In<float> g_output;     // [batch, num_steps, neurons], gradient of the readout's membranes
  In<float> decay, gain;  // [neurons]
  In<unsigned> lengths;   // [batch], steps of each sequence
  poplar::Input<unsigned> block;
  If<learns, In<float>> membranes;  // [all steps + 1, batch, neurons], row t + 1 after step t
  InOut<float> g_v;                 // [batch, neurons], of the last membrane on entry, of the first one on return
  Out<float> g_current;             // [batch, num_steps, neurons], gain * g_v, 0 past the end
  InOut<float> g_bias;              // [batch, neurons], sum of g_current over time
  If<learns, InOut<float>> g_decay, g_gain;  // [batch, neurons], summed over time; that of a gain of 0 is 0
  unsigned num_steps, batch, neurons;        // num_steps: of a block
  bool starts;                               // from a sum of 0, which nobody has stored

  void compute(unsigned worker) {
    const unsigned before = *block * num_steps;
    forEachOwnPair(batch, neurons, worker, [&](unsigned b, unsigned j) {
      const unsigned i = b * neurons + j, first = b * num_steps * neurons + j;
      const unsigned inside = stepsInside(lengths[b], before, num_steps);
      const auto own_decay = Pair::load(&decay[j]), own_gain = Pair::load(&gain[j]);
      auto g = Pair::load(&g_v[i]), sum = starts ? float2{} : Pair::load(&g_bias[i]);
      for (unsigned t = num_steps; t-- > inside;) {  // padded outputs repeat the last membrane
        g = g + Pair::load(&g_output[first + t * neurons]);
        Pair::store(&g_current[first + t * neurons], float2{});
      }
      for (unsigned t = inside; t-- > 0;) {
        g = g + Pair::load(&g_output[first + t * neurons]);
        const auto of_current = own_gain * g;
        Pair::store(&g_current[first + t * neurons], of_current);
        if constexpr (learns) {
          const float* const v = &membranes[(before + t) * batch * neurons];
          addLeakyConstantsGradients(*this, v, v + batch * neurons, g, i, j);
        }
        sum = sum + of_current;
        g = own_decay * g;
      }
      Pair::store(&g_v[i], g);
      Pair::store(&g_bias[i], sum);
    });
  }
};

using namespace cycles;

// The steps inside of a sequence, of a pair.
Slots plainSteps(const auto& vertex, unsigned b, unsigned j, unsigned inside) {
  const bool counted = vertex.isCounted(b, j);
  Slots active = 0;
  for (unsigned t = 0; t < inside; ++t) active += vertex.isQuiet(t, b, j, counted) ? 0 : 1;
  return kPlainNumber + inside * plainStep(vertex, counted) - inside / 2 * kSharedByTwo +
         active * activeStep(vertex.surrogate, counted);
}

template <bool has_second, bool learns>
std::uint64_t workerCycles(const LifGradientScan<has_second, learns>& vertex, unsigned worker) {
  const Slots step = kScanStep + (learns ? constantsGradient(vertex) : membraneGradient(vertex)) +
                     secondGradientOf(vertex) + (has_second && learns ? kSecondConstantsGradient : 0);
  const Slots slots = entry((has_second ? 24 : 19) + (learns ? 4 : 0) + (has_second || learns ? 0 : 1), false);
  return slots + ownPairs(vertex, worker, [&](unsigned b, unsigned j) -> Slots {
           const unsigned inside = stepsOf(vertex, b);
           const Slots around = kScanNumber + (vertex.num_steps - inside) * kPaddedStep;
           if constexpr (has_second || learns) {
             return around + inside * step;
           } else {
             return around + plainSteps(vertex, b, j, inside);
           }
         });
}

template <bool learns>
std::uint64_t workerCycles(const LeakyGradientScan<learns>& vertex, unsigned worker) {
  const Slots step = kLeakyGradient + (learns ? kLeakyConstants : 0);
  return entry(learns ? 15 : 12, false) + ownPairs(vertex, worker, [&](unsigned b, unsigned) {
           const unsigned inside = stepsOf(vertex, b);
           return kScanNumber + kLeakyNumber + inside * step + (vertex.num_steps - inside) * kLeakyPadding;
         });
}

SNNJAX_INSTANCES_OF_CHOICES(LifGradientScan, false)
SNNJAX_INSTANCES_OF_CHOICES(LifGradientScan, true)
SNNJAX_INSTANCES_OF_CHOICES(LeakyGradientScan)

}  // namespace snnjax
