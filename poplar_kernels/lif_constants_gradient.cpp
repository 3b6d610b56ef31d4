// lif_network, backward: the gradients of what a layer's neurons share (decay, threshold, gain) and start from.
#include "fields.hpp"
#include "membrane_gradient.hpp"

namespace snnjax {

// The membrane gradient of a layer that learns its constants: the same, and their gradients. The current is told from
// the two membranes, (v - decay * u) / gain. ListedDots then makes the dot products.
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
  InOut<float> g_last;       // [batch, neurons], gradient of the last membrane; 0 once taken in
  Out<float> g_current;      // [batch, neurons], gradient of the current: gain * g_v, 0 behind the end
  InOut<float> g_bias;       // [batch, neurons], sum of g_current over time
  InOut<float> g_decay;      // [batch, neurons], summed over time, as the two below
  InOut<float> g_threshold;  // [batch, neurons]
  InOut<float> g_gain;       // [batch, neurons]; 0 where the gain itself is 0, from which no current can be told
  unsigned num_steps, delay, batch, neurons;
  unsigned char reset, surrogate;  // enum Reset, enum Surrogate
  bool detach_reset;
  float slope;

  bool compute(unsigned worker) {
    const unsigned t = num_steps - 1 - (*iteration - delay);
    if (t >= num_steps) return true;
    const float* const before = &membranes[t * batch * neurons];
    const float* const after = &membranes[(t + 1) * batch * neurons];
    for (unsigned b = worker; b < batch; b += numWorkers()) {
      const unsigned first = b * neurons;
      if (t >= lengths[b]) {
        fillZeros(&g_current[0], first, first + neurons);
        continue;
      }
      forEachNumber(neurons, [&](unsigned j, auto numbers) {
        const unsigned i = first + j;
        const auto g = membraneGradient(*this, after, i, j, numbers);
        const auto v_before = numbers.load(before + i), limit = numbers.load(&threshold[j]);
        const auto u = resetMembrane(v_before, fires(v_before, limit), limit, reset);
        const auto scaled = numbers.load(after + i) - numbers.load(&decay[j]) * u;
        const auto g_current_now = quotientOrZero(g.v * scaled, numbers.load(&gain[j]));
        numbers.store(&g_decay[i], numbers.load(&g_decay[i]) + g.v * u);
        numbers.store(&g_threshold[i], numbers.load(&g_threshold[i]) + g.threshold);
        numbers.store(&g_gain[i], numbers.load(&g_gain[i]) + g_current_now);
      });
    }
    return true;
  }
};

// The same of a leaky read-out: the recursion of LeakyBackward, on a membrane gradient of its own.
class LeakyConstantsGradient : public poplar::MultiVertex {
 public:
  In<float> g_output;    // [num_steps, batch, neurons], gradient of the read-out's membranes
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
        const auto leak = numbers.load(&decay[j]), v = numbers.load(before + i);
        const auto g_scale = quotientOrZero(g * (numbers.load(after + i) - leak * v), numbers.load(&gain[j]));
        numbers.store(&g_v[i], leak * g);
        numbers.store(&g_decay[i], numbers.load(&g_decay[i]) + g * v);
        numbers.store(&g_gain[i], numbers.load(&g_gain[i]) + g_scale);
      });
    }
    return true;
  }
};

// The gradient of the first membrane, after the step t = 0: what came through the reset of that step, and what came
// directly where there was no step. Runs once, behind the loop over time.
class LifFirstGradient : public poplar::MultiVertex {
 public:
  In<float> g_v;             // [batch, neurons], gradient of the membrane after its reset, of the first step
  In<float> g_last;          // [batch, neurons], gradient of the last membrane, as far as not taken in
  In<float> threshold;       // [neurons]
  In<float> membranes;       // [batch, neurons], before the first step: row 0 of the history
  Out<float> g_first;        // [batch, neurons]
  InOut<float> g_threshold;  // [batch, neurons], the share of the first reset is added
  unsigned batch, neurons;
  unsigned char reset, surrogate;  // enum Reset, enum Surrogate
  bool detach_reset;
  float slope;

  bool compute(unsigned worker) {
    for (unsigned b = worker; b < batch; b += numWorkers()) {
      forEachNumber(neurons, [&](unsigned j, auto numbers) {
        const unsigned i = b * neurons + j;
        const auto g = throughReset(numbers.load(&g_v[i]), numbers.load(&membranes[i]), numbers.load(&threshold[j]),
                                    reset, detach_reset, surrogate, slope);
        numbers.store(&g_first[i], numbers.load(&g_last[i]) + g.v);
        numbers.store(&g_threshold[i], numbers.load(&g_threshold[i]) + g.threshold);
      });
    }
    return true;
  }
};

}  // namespace snnjax
