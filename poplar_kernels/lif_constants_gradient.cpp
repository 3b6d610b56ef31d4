// lif_network, backward: the gradients of what a layer's neurons share (decay, threshold, gain) and start from.
#include "constants_gradient.hpp"
#include "fields.hpp"

namespace snnjax {

// The membrane gradient of a layer that learns its constants: the same, and their gradients. The current is recovered
// from the states before and after the step, (v - decay u - v_coupling w) / gain, or from the second one where gain is
// 0. ListedDots then makes the dot products.
template <bool has_second>
class LifConstantsGradient : public poplar::MultiVertex {
 public:
  In<float> g_spikes;          // [batch, neurons], gradient of own listed spikes, 0 where not listed
  In<float> g_counts;          // [batch, neurons], gradient of the true spike counts
  In<float> decay;             // [neurons]
  In<float> gain;              // [neurons]
  In<float> threshold;         // [neurons]
  In<float> second_threshold;  // [neurons]
  In<unsigned> lengths;        // [batch], steps of each sequence
  poplar::Input<unsigned> iteration;
  In<float> membranes;       // [num_steps + 1, batch, neurons], row t + 1 after step t
  InOut<float> g_v;          // [batch, neurons], gradient of the membrane after its reset, of the step after
  InOut<float> g_last;       // [batch, neurons], gradient of the last membrane; zeroed once added
  Out<float> g_current;      // [batch, neurons], gradient of the current: gain * g_v, 0 past the end
  InOut<float> g_bias;       // [batch, neurons], sum of g_current over time
  InOut<float> g_decay;      // [batch, neurons], summed over time, as the two below
  InOut<float> g_threshold;  // [batch, neurons]
  InOut<float> g_gain;       // [batch, neurons]; 0 where the gain is 0 and no current can be recovered
  unsigned num_steps, delay, batch, neurons;
  unsigned char reset, surrogate;  // enum Reset, enum Surrogate
  bool detach_reset;
  float slope;
  // Of neurons with a second state.
  If<has_second, In<float>> second;       // [kSecondConstants, neurons], neuron.hpp
  If<has_second, In<float>> w;            // as the membranes
  If<has_second, InOut<float>> g_w;       // [batch, neurons], gradient of the second state of the step after
  If<has_second, InOut<float>> g_last_w;  // [batch, neurons], gradient of the last one; zeroed once added
  If<has_second, InOut<float>> g_second;  // [kSecondConstants, batch, neurons], summed over time
  static constexpr bool raises = true;    // an absent coupling is 0
  static constexpr bool kHasSecond = has_second;

  bool compute(unsigned worker) {
    const auto inside = [&](unsigned t, unsigned b) {
      const StateRow before = stateRow(*this, t), after = stateRow(*this, t + 1);
      const unsigned first = b * neurons;
      forEachNumber(neurons, [&](unsigned j, auto numbers) {
        const auto g =
            membraneGradient(*this, after, numbers.load(&g_spikes[first + j]), first + j, j, numbers, first + j);
        addConstantsGradients(*this, before, after, g, first + j, j, numbers);
      });
    };
    forEachSampleBackward(*this, worker, inside, [](unsigned) {});
    return true;
  }
};

// The same for a leaky readout: the recursion of LeakyBackward, on a membrane gradient of its own.
class LeakyConstantsGradient : public poplar::MultiVertex {
 public:
  In<float> g_output;    // [num_steps, batch, neurons], gradient of the readout's membranes
  In<float> decay;       // [neurons]
  In<float> gain;        // [neurons]
  In<unsigned> lengths;  // [batch], steps of each sequence
  poplar::Input<unsigned> iteration;
  In<float> membranes;   // [num_steps + 1, batch, neurons], row t + 1 after step t
  InOut<float> g_v;      // [batch, neurons], decay * gradient of the membrane of the step after
  InOut<float> g_decay;  // [batch, neurons], summed over time
  InOut<float> g_gain;   // [batch, neurons], likewise; 0 where the gain itself is 0
  unsigned num_steps, delay, batch, neurons;

  bool compute(unsigned worker) {
    const unsigned t = num_steps - 1 - (*iteration - delay);
    if (t >= num_steps) return true;
    const float* const before = &membranes[t * batch * neurons];
    const float* const after = &membranes[(t + 1) * batch * neurons];
    const float* const g_now = &g_output[t * batch * neurons];
    for (unsigned b = worker; b < batch; b += numWorkers()) {
      const bool inside = t < lengths[b];
      forEachNumber(neurons, [&](unsigned j, auto numbers) {
        const unsigned i = b * neurons + j;
        const auto g = numbers.load(&g_v[i]) + numbers.load(g_now + i);  // padded outputs repeat the last membrane
        if (!inside) return numbers.store(&g_v[i], g);
        addLeakyConstantsGradients(*this, before, after, g, i, j, numbers);
        numbers.store(&g_v[i], numbers.load(&decay[j]) * g);
      });
    }
    return true;
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

  bool compute(unsigned worker) {
    for (unsigned b = worker; b < batch; b += numWorkers()) {
      forEachNumber(neurons, [&](unsigned j, auto numbers) { writeGradients(b * neurons + j, j, numbers); });
    }
    return true;
  }

 private:
  template <class Of>
  void writeGradients(unsigned i, unsigned j, Of numbers) {
    const StateRow states = stateRow(*this, 0);
    const auto v = Of::load(states.v + i), limit = raisedThreshold(*this, states, i, j, numbers);
    auto g = throughReset(Of::load(&g_v[i]), v, limit, reset, detach_reset, surrogate, slope);
    if constexpr (has_second) {
      const SecondOf<LifFirstGradient, Of> own(*this, j, numbers);
      const auto g_next = Of::load(&g_w[i]);
      const auto through_spike = maskedProduct(own[WJump] * g_next, surrogateDerivative(v - limit, surrogate, slope));
      g.v += through_spike + own[WMembrane] * g_next;
      g.threshold -= through_spike;
      const auto g_own = Of::load(&g_last_w[i]) + own[WDecay] * g_next + own[ThresholdCoupling] * g.threshold;
      Of::store(&g_first_w[i], g_own);
      Of::store(&g_coupling[i], Of::load(&g_coupling[i]) + g.threshold * Of::load(states.w + i));
    }
    Of::store(&g_first[i], Of::load(&g_last[i]) + g.v);
    Of::store(&g_threshold[i], Of::load(&g_threshold[i]) + g.threshold);
  }
};

template class LifConstantsGradient<false>;
template class LifConstantsGradient<true>;
template class LifFirstGradient<false>;
template class LifFirstGradient<true>;

}  // namespace snnjax
