// lif_network without recurrent layers, backward: neurons over a block of steps, from the last to the first. Workers
// share the numbers of all samples, in pairs.
#include "../fields.hpp"
#include "constants_gradient.hpp"
#include "neuron_rows.hpp"

namespace snnjax {

// The gradients of the currents of a block; where the layer `learns`, those of its constants besides.
template <bool has_second, bool learns>
class LifGradientScan : public poplar::MultiVertex {
 public:
  In<float> g_spikes;          // [batch, num_steps, neurons], gradient of own listed spikes, 0 where not listed
  In<float> g_counts;          // [batch, neurons], gradient of the true spike counts
  In<float> decay;             // [neurons]
  In<float> gain;              // [neurons]
  In<float> threshold;         // [neurons]
  In<float> second_threshold;  // [neurons]
  In<unsigned> lengths;        // [batch], steps of each sequence
  poplar::Input<unsigned> block;
  In<float> membranes;                   // [all steps + 1, batch, neurons], row t + 1 after step t
  InOut<float> g_v;                      // [batch, neurons], of the membrane after its reset, of the step after
  InOut<float> g_last;                   // [batch, neurons], gradient of the last membrane; zeroed once added
  Out<float> g_current;                  // [batch, num_steps, neurons], gain * g_v, 0 past the end
  InOut<float> g_bias;                   // [batch, neurons], sum of g_current over time
  If<learns, InOut<float>> g_decay;      // [batch, neurons], summed over time, as the two below
  If<learns, InOut<float>> g_threshold;  // [batch, neurons]
  If<learns, InOut<float>> g_gain;       // [batch, neurons]; 0 where no current can be recovered
  unsigned num_steps, batch, neurons;    // num_steps: of a block
  unsigned char reset, surrogate;        // enum Reset, enum Surrogate
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

  bool compute(unsigned worker) {
    const unsigned before = *block * num_steps;
    forEachOwnNumber(batch, neurons, worker, [&](unsigned b, unsigned j, auto numbers) {
      const unsigned i = b * neurons + j;
      for (unsigned t = num_steps; t-- > 0;) {
        const unsigned at = (b * num_steps + t) * neurons + j;
        if (before + t >= lengths[b]) {
          numbers.store(&g_current[at], numbers.fill(0.0f));
          continue;
        }
        const StateRow after = stateRow(*this, before + t + 1);
        const auto g = membraneGradient(*this, after, numbers.load(&g_spikes[at]), i, j, numbers, at);
        if constexpr (learns) addConstantsGradients(*this, stateRow(*this, before + t), after, g, i, j, numbers);
      }
    });
    return true;
  }
};

// The leaky readout: g_v = g_output + decay * g_v of the step after.
template <bool learns>
class LeakyGradientScan : public poplar::MultiVertex {
 public:
  In<float> g_output;    // [batch, num_steps, neurons], gradient of the readout's membranes
  In<float> decay;       // [neurons]
  In<float> gain;        // [neurons]
  In<unsigned> lengths;  // [batch], steps of each sequence
  poplar::Input<unsigned> block;
  If<learns, In<float>> membranes;     // [all steps + 1, batch, neurons], row t + 1 after step t
  InOut<float> g_v;                    // [batch, neurons], of the last membrane on entry, of the first one on return
  Out<float> g_current;                // [batch, num_steps, neurons], gain * g_v, 0 past the end
  InOut<float> g_bias;                 // [batch, neurons], sum of g_current over time
  If<learns, InOut<float>> g_decay;    // [batch, neurons], summed over time
  If<learns, InOut<float>> g_gain;     // [batch, neurons], likewise; 0 where the gain itself is 0
  unsigned num_steps, batch, neurons;  // num_steps: of a block

  bool compute(unsigned worker) {
    const unsigned first = *block * num_steps;
    forEachOwnNumber(batch, neurons, worker, [&](unsigned b, unsigned j, auto numbers) {
      const unsigned i = b * neurons + j, width = batch * neurons;
      for (unsigned t = num_steps; t-- > 0;) {
        const bool inside = first + t < lengths[b];
        const unsigned at = (b * num_steps + t) * neurons + j;
        const auto g = numbers.load(&g_v[i]) + numbers.load(&g_output[at]);  // padded outputs repeat the last membrane
        const auto g_own = inside ? numbers.load(&gain[j]) * g : numbers.fill(0.0f);
        numbers.store(&g_v[i], inside ? numbers.load(&decay[j]) * g : g);
        numbers.store(&g_current[at], g_own);
        numbers.store(&g_bias[i], numbers.load(&g_bias[i]) + g_own);
        if constexpr (learns) {
          const float* const before = &membranes[(first + t) * width];
          if (inside) addLeakyConstantsGradients(*this, before, before + width, g, i, j, numbers);
        }
      }
    });
    return true;
  }
};

template class LifGradientScan<false, false>;
template class LifGradientScan<false, true>;
template class LifGradientScan<true, false>;
template class LifGradientScan<true, true>;
template class LeakyGradientScan<false>;
template class LeakyGradientScan<true>;

}  // namespace snnjax
