// The gradients of a membrane, and of the constants that neurons share, at one step.
#pragma once

#include "neuron.hpp"

namespace snnjax {

// The gradients of one neuron, or two neighbours, at one step.
template <class N>
struct NeuronGradient {
  N v;          // of the membrane
  N threshold;  // through the reset and the spike
  N w;          // of the second state; 0 where there is none
};

// Row `row` of the histories of a vertex; that of second states where it reads any.
struct StateRow {
  const float *v, *w = nullptr;
};

template <class V>
inline StateRow stateRow(const V& vertex, unsigned row) {
  const unsigned first = row * vertex.batch * vertex.neurons;
  if constexpr (V::kHasSecond) {
    return {&vertex.membranes[first], vertex.raises ? &vertex.w[first] : nullptr};
  } else {
    return {&vertex.membranes[first]};
  }
}

// The threshold of neurons, raised by their second states.
template <class V, class Of>
inline auto raisedThreshold(const V& vertex, StateRow states, unsigned i, unsigned j, Of numbers) {
  const auto resting = Of::load(&vertex.threshold[j]);
  if constexpr (V::kHasSecond) {
    return resting + SecondOf<V, Of>(vertex, j, numbers).raise(states.w, i);
  } else {
    return resting;
  }
}

// What flows back from the next step's second state to this step's states, and from the membrane to the second state.
template <class V, class N, class Of>
inline void throughSecond(V& vertex, NeuronGradient<N>& g, unsigned i, unsigned j, Of numbers) {
  const SecondOf<V, Of> second(vertex, j, numbers);
  const N g_next = Of::load(&vertex.g_w[i]);
  g.v += second[WMembrane] * g_next;
  g.w = Of::load(&vertex.g_last_w[i]) + second[WDecay] * g_next;
  if (vertex.raises) g.w += second[ThresholdCoupling] * g.threshold;
  g.w += second[VCoupling] * g.v;
  Of::store(&vertex.g_last_w[i], Of::fill(0.0f));
  Of::store(&vertex.g_w[i], g.w);
}

// What comes to the spikes of neurons in a step, `g_spikes` and where they are listed that of their counts, as it goes
// on to their membranes.
template <class V, class N, class Of>
inline N throughSpike(const V& vertex, N membrane, N limit, N second_limit, N g_spikes, unsigned i, Of) {
  return maskedProduct(g_spikes + maskedProduct(fires(membrane, second_limit), Of::load(&vertex.g_counts[i])),
                       surrogateDerivative(membrane - limit, vertex.surrogate, vertex.slope));
}

// The gradients of the neurons j ... of a sample: what arrives directly, through the reset and the second state of the
// next step, and through the spikes. On entry the field g_v holds the gradient of u of the next step and g_w that of
// its second state, on return those of this step. `i` counts in [batch, neurons], `at` in g_current.
template <class V, class N, class Of>
inline auto membraneGradient(V& vertex, StateRow states, N g_spikes, unsigned i, unsigned j, Of numbers, unsigned at) {
  const auto membrane = Of::load(states.v + i), limit = raisedThreshold(vertex, states, i, j, numbers);
  auto second_limit = Of::load(&vertex.second_threshold[j]);
  if constexpr (V::kHasSecond) second_limit += SecondOf<V, Of>(vertex, j, numbers).raise(states.w, i);
  if constexpr (V::kHasSecond) {
    g_spikes += SecondOf<V, Of>(vertex, j, numbers)[WJump] * Of::load(&vertex.g_w[i]);
  }
  const auto through_spike = throughSpike(vertex, membrane, limit, second_limit, g_spikes, i, numbers);
  const auto g_reset = throughReset(Of::load(&vertex.g_v[i]), membrane, limit, vertex.reset, vertex.detach_reset,
                                    vertex.surrogate, vertex.slope);
  NeuronGradient<decltype(g_spikes)> g = {Of::load(&vertex.g_last[i]) + g_reset.v + through_spike,
                                          g_reset.threshold - through_spike, Of::fill(0.0f)};
  if constexpr (V::kHasSecond) throughSecond(vertex, g, i, j, numbers);
  auto g_current = Of::load(&vertex.gain[j]) * g.v;
  if constexpr (V::kHasSecond) g_current += SecondOf<V, Of>(vertex, j, numbers)[WGain] * g.w;
  Of::store(&vertex.g_last[i], Of::fill(0.0f));
  Of::store(&vertex.g_v[i], Of::load(&vertex.decay[j]) * g.v);
  Of::store(&vertex.g_current[at], g_current);
  Of::store(&vertex.g_bias[i], Of::load(&vertex.g_bias[i]) + g_current);
  return g;
}

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
