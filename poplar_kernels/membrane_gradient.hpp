// The gradient of a membrane at one step, shared by the backward codelets of lif_network.
#pragma once

#include "neuron.hpp"

namespace snnjax {

// The gradients of one neuron, or two neighbours, at one step.
template <class N>
struct NeuronGradient {
  N v;          // of the membrane
  N threshold;  // through the reset and the spike
};

// g_v of the neurons j ... of a sample: what arrives directly, through the reset of the next step, and through the
// spikes. On entry the field g_v holds the gradient of u of the next step, on return that of this step's. `i` counts
// in [batch, neurons].
template <class V, class Of>
inline auto membraneGradient(V& vertex, const float* v, unsigned i, unsigned j, Of) {
  const auto membrane = Of::load(v + i), limit = Of::load(&vertex.threshold[j]);
  const auto near = fires(membrane, Of::load(&vertex.second_threshold[j]));
  const auto g_spikes = Of::load(&vertex.g_spikes[i]) + maskedProduct(near, Of::load(&vertex.g_counts[i]));
  const auto slope = surrogateDerivative(membrane - limit, vertex.surrogate, vertex.slope);
  const auto through_spike = maskedProduct(g_spikes, slope);
  const auto g_reset = throughReset(Of::load(&vertex.g_v[i]), membrane, limit, vertex.reset, vertex.detach_reset,
                                    vertex.surrogate, vertex.slope);
  const auto g_v = Of::load(&vertex.g_last[i]) + g_reset.v + through_spike;
  const auto g_current = Of::load(&vertex.gain[j]) * g_v;
  Of::store(&vertex.g_last[i], Of::fill(0.0f));
  Of::store(&vertex.g_v[i], Of::load(&vertex.decay[j]) * g_v);
  Of::store(&vertex.g_current[i], g_current);
  Of::store(&vertex.g_bias[i], Of::load(&vertex.g_bias[i]) + g_current);
  return NeuronGradient<decltype(g_v + g_v)>{g_v, g_reset.threshold - through_spike};
}

inline void fillZeros(float* to, unsigned first, unsigned last) {
  for (unsigned i = first; i < last; ++i) to[i] = 0.0f;
}

}  // namespace snnjax
