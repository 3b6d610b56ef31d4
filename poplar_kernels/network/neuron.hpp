// The equation of generalised LIF neurons, forward and backward, for one neuron or two neighbours (N):
//
//   w = w_decay w' + w_membrane v' + w_gain current + w_jump s'
//   v = decay reset(v', s') + gain current + v_coupling w
//   s = [v > threshold + threshold_coupling w]
//
// A prime marks the previous step. Neurons without a second state w are plain LIF, and their vertices have no field for
// it.
#pragma once

#include "../surrogates.hpp"

namespace snnjax {

// The constants of a second state of a vertex, for the neurons from `j`; one that is absent is 0.
template <class V, class Of>
class SecondOf {
 public:
  SecondOf(const V& vertex, unsigned j, Of) : vertex_(vertex), j_(j) {}

  auto operator[](GlifConstant constant) const {
    return Of::load(&vertex_.second[(constant - WDecay) * vertex_.neurons + j_]);
  }

  // What a second state adds to the threshold. A vertex with fixed thresholds may have no `w` to read.
  template <class N>
  N raise(N w) const {
    return vertex_.raises ? (*this)[ThresholdCoupling] * w : Of::fill(0.0f);
  }
  auto raise(const float* w, unsigned i) const { return vertex_.raises ? raise(Of::load(w + i)) : Of::fill(0.0f); }

  // w after a step, without the current's part.
  template <class N>
  N withoutCurrent(N v, N w, N spikes) const {
    return (*this)[WDecay] * w + (*this)[WMembrane] * v + (*this)[WJump] * spikes;
  }

 private:
  const V& vertex_;
  unsigned j_;
};

// u: the membrane after the reset by its own spikes.
template <class N>
inline N resetMembrane(N v, N spikes, N threshold, unsigned char reset) {
  if (reset == Subtract) return v - maskedProduct(spikes,
                                                  threshold);  // an infinite threshold leaves v as it is
  return reset == Zero ? v * (1.0f - spikes) : v;
}

// The cotangents that the reset passes on: of the membrane, and of the threshold.
template <class N>
struct ResetGradient {
  N v, threshold;
};

// From the cotangent of u. With `detach` the spikes in the reset are constants.
template <class N>
inline ResetGradient<N> throughReset(N g_u, N v, N threshold, unsigned char reset, bool detach, unsigned char surrogate,
                                     float slope) {
  if (reset == None) return {g_u, Numbers<N>::fill(0.0f)};
  const N spikes = fires(v, threshold);
  ResetGradient<N> g = {g_u, -(g_u * spikes)};
  N removed = threshold;
  if (reset == Zero) {
    g = {g_u * (1.0f - spikes), Numbers<N>::fill(0.0f)};
    removed = v;
  }
  if (detach) return g;
  const N through_spike = -(g_u * removed) * surrogateDerivative(v - threshold, surrogate, slope);
  return {g.v + through_spike, g.threshold - through_spike};
}

}  // namespace snnjax
