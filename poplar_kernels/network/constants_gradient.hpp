// The gradients of the constants that neurons share, at one step.
#pragma once

#include "membrane_gradient.hpp"

namespace snnjax {

// field[i] += term
template <class Field, class N, class Of>
inline void addTerm(Field& field, unsigned i, N term, Of) {
  Of::store(&field[i], Of::load(&field[i]) + term);
}

// From the membrane's gradient `g` of the neurons j ... and their states before and after the step. The current is
// recovered from these: (v - decay u - v_coupling w) / gain, or from the second state where gain is 0.
template <class V, class N, class Of>
inline void addConstantsGradients(V& vertex, StateRow before, StateRow after, NeuronGradient<N> g, unsigned i,
                                  unsigned j, Of numbers) {
  const N v = Of::load(before.v + i), limit = raisedThreshold(vertex, before, i, j, numbers);
  const N spikes = fires(v, limit), u = resetMembrane(v, spikes, limit, vertex.reset);
  N gained = Of::load(after.v + i) - Of::load(&vertex.decay[j]) * u;  // gain * current
  addTerm(vertex.g_decay, i, g.v * u, numbers);
  addTerm(vertex.g_threshold, i, g.threshold, numbers);
  if constexpr (V::kHasSecond) {
    const SecondOf<V, Of> own(vertex, j, numbers);
    const N w_before = Of::load(before.w + i), w_after = Of::load(after.w + i);
    gained -= own[VCoupling] * w_after;
    const N w_gained = w_after - own.withoutCurrent(v, w_before, spikes);
    const N current = quotientOr(gained, Of::load(&vertex.gain[j]), quotientOrZero(w_gained, own[WGain]));
    addTerm(vertex.g_gain, i, g.v * current, numbers);
    const N of_second[kSecondConstants] = {g.w * w_before, g.w * v,       g.w * current,
                                           g.w * spikes,   g.v * w_after, g.threshold * w_after};
    for (unsigned k = 0; k < kSecondConstants; ++k) {
      addTerm(vertex.g_second, k * vertex.batch * vertex.neurons + i, of_second[k], numbers);
    }
  } else {
    addTerm(vertex.g_gain, i, quotientOrZero(g.v * gained, Of::load(&vertex.gain[j])), numbers);
  }
}

// The same for a leaky readout; a gain of 0 gets none.
template <class V, class N, class Of>
inline void addLeakyConstantsGradients(V& vertex, const float* before, const float* after, N g, unsigned i, unsigned j,
                                       Of numbers) {
  const N v = Of::load(before + i), gained = Of::load(after + i) - Of::load(&vertex.decay[j]) * v;
  addTerm(vertex.g_decay, i, g * v, numbers);
  addTerm(vertex.g_gain, i, quotientOrZero(g * gained, Of::load(&vertex.gain[j])), numbers);
}

}  // namespace snnjax
