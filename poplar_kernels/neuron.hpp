// The equations of leaky integrate-and-fire neurons, forward and backward, for one neuron or two neighbours (N).
#pragma once

#include "conventions.hpp"
#include "surrogates.hpp"

namespace snnjax {

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
