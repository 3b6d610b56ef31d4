// The gradients of a membrane, and of the constants that neurons share, at one step.
#pragma once

#include "neuron.hpp"

namespace snnjax {

// The gradients of two neighbours at one step.
struct NeuronGradient {
  float2 v;          // of the membrane
  float2 threshold;  // through the reset and the spike
  float2 w;          // of the second state; 0 where there is none
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
template <class V>
inline float2 raisedThreshold(const V& vertex, StateRow states, unsigned i, unsigned j) {
  const auto resting = Pair::load(&vertex.threshold[j]);
  if constexpr (V::kHasSecond) {
    return resting + SecondOf(vertex, j).raise(states.w, i);
  } else {
    return resting;
  }
}

// What flows back from the next step's second state to this step's states, and from the membrane to the second state.
template <class V>
inline void throughSecond(V& vertex, NeuronGradient& g, unsigned i, unsigned j) {
  const SecondOf second(vertex, j);
  const float2 g_next = Pair::load(&vertex.g_w[i]);
  g.v += second[WMembrane] * g_next;
  g.w = Pair::load(&vertex.g_last_w[i]) + second[WDecay] * g_next;
  if (vertex.raises) g.w += second[ThresholdCoupling] * g.threshold;
  g.w += second[VCoupling] * g.v;
  Pair::store(&vertex.g_last_w[i], float2{});
  Pair::store(&vertex.g_w[i], g.w);
}

// What comes to the spikes of neurons in a step, `g_spikes` and where they are listed that of their counts, as it goes
// on to their membranes.
template <class V>
inline float2 throughSpike(const V& vertex, float2 membrane, float2 limit, float2 second_limit, float2 g_spikes,
                           unsigned i) {
  return maskedProduct(g_spikes + maskedProduct(fires(membrane, second_limit), Pair::load(&vertex.g_counts[i])),
                       surrogateDerivative(membrane - limit, vertex.surrogate, vertex.slope));
}

// The gradients of the neurons j ... of a sample: what arrives directly, through the reset and the second state of the
// next step, and through the spikes. On entry the field g_v holds the gradient of u of the next step and g_w that of
// its second state, on return those of this step. `i` counts in [batch, neurons], `at` in g_current.
template <class V>
inline NeuronGradient membraneGradient(V& vertex, StateRow states, float2 g_spikes, unsigned i, unsigned j,
                                       unsigned at) {
  const auto membrane = Pair::load(states.v + i), limit = raisedThreshold(vertex, states, i, j);
  auto second_limit = Pair::load(&vertex.second_threshold[j]);
  if constexpr (V::kHasSecond) {
    second_limit += SecondOf(vertex, j).raise(states.w, i);
    g_spikes += SecondOf(vertex, j)[WJump] * Pair::load(&vertex.g_w[i]);
  }
  const auto through_spike = throughSpike(vertex, membrane, limit, second_limit, g_spikes, i);
  const auto g_reset = throughReset(Pair::load(&vertex.g_v[i]), membrane, limit, vertex.reset, vertex.detach_reset,
                                    vertex.surrogate, vertex.slope);
  NeuronGradient g = {Pair::load(&vertex.g_last[i]) + g_reset.v + through_spike, g_reset.threshold - through_spike,
                      float2{}};
  if constexpr (V::kHasSecond) throughSecond(vertex, g, i, j);
  auto g_current = Pair::load(&vertex.gain[j]) * g.v;
  if constexpr (V::kHasSecond) g_current += SecondOf(vertex, j)[WGain] * g.w;
  Pair::store(&vertex.g_last[i], float2{});
  Pair::store(&vertex.g_v[i], Pair::load(&vertex.decay[j]) * g.v);
  Pair::store(&vertex.g_current[at], g_current);
  Pair::store(&vertex.g_bias[i], Pair::load(&vertex.g_bias[i]) + g_current);
  return g;
}

// field[i] += term
inline void addTerm(InOut<float>& field, unsigned i, float2 term) {
  Pair::store(&field[i], Pair::load(&field[i]) + term);
}

// From the membrane's gradient `g` of the neurons j ... and their states before and after the step. The current is
// recovered from these: (v - decay u - v_coupling w) / gain, or from the second state where gain is 0.
template <class V>
inline void addConstantsGradients(V& vertex, StateRow before, StateRow after, NeuronGradient g, unsigned i,
                                  unsigned j) {
  const float2 v = Pair::load(before.v + i), limit = raisedThreshold(vertex, before, i, j);
  const float2 spikes = fires(v, limit), u = resetMembrane(v, spikes, limit, vertex.reset);
  float2 gained = Pair::load(after.v + i) - Pair::load(&vertex.decay[j]) * u;  // gain * current
  addTerm(vertex.g_decay, i, g.v * u);
  addTerm(vertex.g_threshold, i, g.threshold);
  if constexpr (V::kHasSecond) {
    const SecondOf own(vertex, j);
    const float2 w_before = Pair::load(before.w + i), w_after = Pair::load(after.w + i);
    gained -= own[VCoupling] * w_after;
    const float2 w_gained = w_after - own.withoutCurrent(v, w_before, spikes);
    const float2 current = quotientOr(gained, Pair::load(&vertex.gain[j]), quotientOrZero(w_gained, own[WGain]));
    addTerm(vertex.g_gain, i, g.v * current);
    const float2 of_second[kSecondConstants] = {g.w * w_before, g.w * v,       g.w * current,
                                                g.w * spikes,   g.v * w_after, g.threshold * w_after};
    for (unsigned k = 0; k < kSecondConstants; ++k) {
      addTerm(vertex.g_second, k * vertex.batch * vertex.neurons + i, of_second[k]);
    }
  } else {
    addTerm(vertex.g_gain, i, quotientOrZero(g.v * gained, Pair::load(&vertex.gain[j])));
  }
}

// The same for a leaky readout; a gain of 0 gets none.
template <class V>
inline void addLeakyConstantsGradients(V& vertex, const float* before, const float* after, float2 g, unsigned i,
                                       unsigned j) {
  const float2 v = Pair::load(before + i), gained = Pair::load(after + i) - Pair::load(&vertex.decay[j]) * v;
  addTerm(vertex.g_decay, i, g * v);
  addTerm(vertex.g_gain, i, quotientOrZero(g * gained, Pair::load(&vertex.gain[j])));
}

}  // namespace snnjax
