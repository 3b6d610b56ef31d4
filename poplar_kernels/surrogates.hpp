// Surrogate derivatives of the spike, ds/dv at x = v - threshold: those of snnjax/surrogates.py.
#pragma once

#include "conventions.hpp"
#include "numbers.hpp"

namespace snnjax {

template <class N>
inline N sigmoidOf(N x) {
  return 1.0f / (1.0f + exponential(-x));
}

// `surrogate` is a state of the vertex, and the same for all its neurons; an unknown number gives no gradient.
template <class N>
inline N surrogateDerivative(N x, unsigned char surrogate, float slope) {
  constexpr float kHalfPi = 1.57079632679489662f;
  using Of = Numbers<N>;
  switch (surrogate) {
    case Superspike: {
      const N root = 1.0f + slope * absolute(x);
      return 1.0f / (root * root);
    }
    case Arctan: {
      const N scaled = (kHalfPi * slope) * x;
      return 1.0f / (1.0f + scaled * scaled);
    }
    case Triangle: return nonNegative(1.0f - slope * absolute(x));
    case Gaussian: {
      const N scaled = slope * x;
      return exponential(-(scaled * scaled));
    }
    case Sigmoid: return slope * sigmoidOf(slope * x) * sigmoidOf(-(slope * x));
    case Boxcar: return slope * isLess(absolute(x), Of::fill(0.5f / slope));
    case StraightThrough: return Of::fill(1.0f);
    default: return Of::fill(0.0f);
  }
}

}  // namespace snnjax
