// The equation of generalised LIF neurons, forward and backward, for two neighbours at a time: a tile has an even
// number of neurons.
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

using Pair = Numbers<float2>;

// The constants of a second state of a vertex, for the neurons from `j`; one that is absent is 0.
template <class V>
class SecondOf {
 public:
  SecondOf(const V& vertex, unsigned j) : vertex_(vertex), j_(j) {}

  float2 operator[](GlifConstant constant) const {
    return Pair::load(&vertex_.second[(constant - WDecay) * vertex_.neurons + j_]);
  }

  // What a second state adds to the threshold. A vertex with fixed thresholds may have no `w` to read.
  float2 raise(float2 w) const { return vertex_.raises ? (*this)[ThresholdCoupling] * w : float2{}; }
  float2 raise(const float* w, unsigned i) const { return vertex_.raises ? raise(Pair::load(w + i)) : float2{}; }

  // w after a step, without the current's part.
  float2 withoutCurrent(float2 v, float2 w, float2 spikes) const {
    return (*this)[WDecay] * w + (*this)[WMembrane] * v + (*this)[WJump] * spikes;
  }

 private:
  const V& vertex_;
  unsigned j_;
};

// u: the membrane after the reset by its own spikes.
inline float2 resetMembrane(float2 v, float2 spikes, float2 threshold, unsigned char reset) {
  if (reset == Subtract) return v - maskedProduct(spikes, threshold);  // an infinite threshold leaves v as it is
  return reset == Zero ? v * (1.0f - spikes) : v;
}

// The cotangents that the reset passes on: of the membrane, and of the threshold.
struct ResetGradient {
  float2 v, threshold;
};

// From the cotangent of u. With `detach` the spikes in the reset are constants.
inline ResetGradient throughReset(float2 g_u, float2 v, float2 threshold, unsigned char reset, bool detach,
                                  unsigned char surrogate, float slope) {
  if (reset == None) return {g_u, float2{}};
  const float2 spikes = fires(v, threshold);
  ResetGradient g = {g_u, -(g_u * spikes)};
  float2 removed = threshold;
  if (reset == Zero) {
    g = {g_u * (1.0f - spikes), float2{}};
    removed = v;
  }
  if (detach) return g;
  const float2 through_spike = -(g_u * removed) * surrogateDerivative(v - threshold, surrogate, slope);
  return {g.v + through_spike, g.threshold - through_spike};
}

}  // namespace snnjax
