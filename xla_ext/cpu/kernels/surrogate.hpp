// The surrogate derivatives of a spike.
#pragma once

#include "../kernels.hpp"
#include "simd.hpp"

namespace snnjax::SNNJAX_ISA {

// A surrogate derivative at x = v - threshold; the equations are those of snnjax/surrogates.py.
template <Surrogate kKind>
inline Floats slopeWithoutEnd(Floats x, float slope) {
  constexpr float kHalfPi = 1.57079633F;
  const Floats one = splat(1.0F);
  if constexpr (kKind == Surrogate::Superspike) {
    const Floats base = one + slope * absolute(x);
    return one / (base * base);
  } else if constexpr (kKind == Surrogate::Arctan) {
    const Floats scaled = kHalfPi * slope * x;
    return one / (one + scaled * scaled);
  } else if constexpr (kKind == Surrogate::Triangle) {
    return maximum(one - slope * absolute(x), select(notEqual(x, x), x, Floats{}));
  } else if constexpr (kKind == Surrogate::Gaussian) {
    const Floats scaled = slope * x;
    return select(notEqual(x, x), x, exponential(-(scaled * scaled)));
  } else if constexpr (kKind == Surrogate::Sigmoid) {
    const Floats decayed = exponential(-slope * absolute(x));  // sigma(-|slope x|) = e / (1 + e)
    return select(notEqual(x, x), x, slope * decayed / ((one + decayed) * (one + decayed)));
  } else if constexpr (kKind == Surrogate::Boxcar) {
    return select(greater(splat(0.5F / slope), absolute(x)), splat(slope), Floats{});
  } else {
    return one;
  }
}

template <Surrogate kKind>
inline Floats slopeAt(Floats x, SurrogateForm surrogate) {
  const Floats slope = slopeWithoutEnd<kKind>(x, surrogate.slope);
  return select(greater(absolute(x), splat(surrogate.reach)), Floats{}, slope);
}

// Calls `function<kind>`: the surrogate is chosen once a call, not once a neuron.
#define SNNJAX_WITH_SURROGATE(kind, function, ...)                                             \
  switch (kind) {                                                                              \
    case Surrogate::Superspike: return function<Surrogate::Superspike>(__VA_ARGS__);           \
    case Surrogate::Arctan: return function<Surrogate::Arctan>(__VA_ARGS__);                   \
    case Surrogate::Triangle: return function<Surrogate::Triangle>(__VA_ARGS__);               \
    case Surrogate::Gaussian: return function<Surrogate::Gaussian>(__VA_ARGS__);               \
    case Surrogate::Sigmoid: return function<Surrogate::Sigmoid>(__VA_ARGS__);                 \
    case Surrogate::Boxcar: return function<Surrogate::Boxcar>(__VA_ARGS__);                   \
    case Surrogate::StraightThrough: return function<Surrogate::StraightThrough>(__VA_ARGS__); \
  }

template <Surrogate kKind>
inline void derivativeWith(SurrogateForm surrogate, const float* x, Index count, float* out) {
  for (Index i = 0; i < count; i += kLanes) {
    const Index left = count - i;
    if (left >= kLanes) {
      store(out + i, slopeAt<kKind>(load(x + i), surrogate));
    } else {
      storePart(out + i, slopeAt<kKind>(loadPart(x + i, left), surrogate), left);
    }
  }
}

inline void derivative(SurrogateForm surrogate, const float* x, Index count, float* out) {
  SNNJAX_WITH_SURROGATE(surrogate.kind, derivativeWith, surrogate, x, count, out)
}

}  // namespace snnjax::SNNJAX_ISA
