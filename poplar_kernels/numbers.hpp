// Equations are written once, for one number (`float`) or two neighbours in a 64-bit register (`float2`): templates
// take either as N. Sums, membranes and gradients are floats; weights may be halves.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <poplar/Vertex.hpp>
#ifndef __IPU__
#include <poplar/VectorTypes.hpp>  // which the IPU's compiler knows
#endif

namespace snnjax {

// The same bits as another type.
template <class To, class From>
inline To bitsOf(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

template <class T>
inline float toFloat(T x) {
  return static_cast<float>(x);
}

#ifndef __IPU__
// The host's compiler calls a function for each half. Here a multiplication shifts the exponent, which also normalises
// subnormal numbers; an exponent of all ones stays infinity or NaN.
template <>
inline float toFloat(half x) {
  const auto bits = bitsOf<std::uint16_t>(x);
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fff) << 13;
  const auto moved = bitsOf<std::uint32_t>(bitsOf<float>(magnitude) * 0x1p112f);
  return bitsOf<float>(moved | (magnitude >= 0x7c00U << 13 ? 0x7f800000U : 0U) |
                       static_cast<std::uint32_t>(bits & 0x8000) << 16);
}
#endif

// Truncated, on every machine: what an integer cannot hold becomes the nearest limit, a NaN 0.
template <class To>
inline To toInteger(float x) {
  // The lowest integer is a power of 2 or 0, so a float; the largest of 32 bits is not, but the next one is.
  constexpr float kLowest = static_cast<float>(std::numeric_limits<To>::min());
  constexpr float kBeyond = 2.0f * static_cast<float>(std::numeric_limits<To>::max() / 2 + 1);
  if (x >= kBeyond) return std::numeric_limits<To>::max();
  if (x <= kLowest) return std::numeric_limits<To>::min();
  return x == x ? static_cast<To>(x) : To(0);
}

// Unsigned numbers ordered as the floats they encode.
inline unsigned keyOf(float v) {
  const auto bits = bitsOf<unsigned>(v);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000U;
}
inline float floatOf(unsigned key) { return bitsOf<float>(key >> 31 != 0 ? key & 0x7fffffffU : ~key); }

template <class N>
struct Numbers;

template <>
struct Numbers<float> {
  static constexpr unsigned kCount = 1;
  static float load(const auto* from) { return toFloat(*from); }
  template <class T>
  static void store(T* to, float x) {
    *to = static_cast<T>(x);
  }
  static float fill(float x) { return x; }
};

inline float absolute(float x) { return std::fabs(x); }
inline float exponential(float x) { return std::exp(x); }
inline float fires(float v, float threshold) { return v > threshold ? 1.0f : 0.0f; }
inline float firesAt(float v, float threshold) { return v >= threshold ? 1.0f : 0.0f; }
inline float isLess(float a, float b) { return a < b ? 1.0f : 0.0f; }
inline float nonNegative(float x) { return x > 0.0f ? x : 0.0f; }
// a * b, and 0 where a is 0 whatever b is: a neuron without gradient gets none from a NaN.
inline float maskedProduct(float a, float b) { return a == 0.0f ? 0.0f : a * b; }
// Whether all bits of a pair are 0: by integers, beside the floats.
inline bool areZero(const float* pair) { return (bitsOf<unsigned>(pair[0]) | bitsOf<unsigned>(pair[1])) == 0; }
inline float quotientOr(float a, float b, float otherwise) { return b == 0.0f ? otherwise : a / b; }

template <>
struct Numbers<float2> {
  static constexpr unsigned kCount = 2;
  // One 64-bit load; of halves one 32-bit load and one conversion. The alignment is what lets a compiler emit them.
  static float2 load(const float* from) {
    float2 x;
    std::memcpy(&x, __builtin_assume_aligned(from, sizeof(x)), sizeof(x));
    return x;
  }
  static float2 load(const half* from) {
    half2 x;
    std::memcpy(&x, __builtin_assume_aligned(from, sizeof(x)), sizeof(x));
    return float2{toFloat(x[0]), toFloat(x[1])};
  }
  static void store(float* to, float2 x) { std::memcpy(__builtin_assume_aligned(to, sizeof(x)), &x, sizeof(x)); }
  static void store(half* to, float2 x) {
    const half2 pair = {static_cast<half>(x[0]), static_cast<half>(x[1])};
    std::memcpy(__builtin_assume_aligned(to, sizeof(pair)), &pair, sizeof(pair));
  }
  static float2 fill(float x) { return float2{x, x}; }
};

// What a comparison of short vectors yields: all bits of a lane set, or none.
template <class V>
using Truth = decltype(V{} < V{});
using Mask = Truth<float2>;

template <class V>
inline V keptWhere(Truth<V> where, V x) {
  return bitsOf<V>(where & bitsOf<Truth<V>>(x));
}
template <class V>
inline V chosen(Truth<V> where, V x, V otherwise) {
  return bitsOf<V>((where & bitsOf<Truth<V>>(x)) | (~where & bitsOf<Truth<V>>(otherwise)));
}

// Whether either lane lies above its bound: the mask, both halves in one, moved to a main register.
inline bool anyAbove(float2 v, float2 bound) {
  const Mask above = v > bound;
  return (above[0] | above[1]) != 0;
}

inline float2 smaller(float2 a, float2 b) { return float2{b[0] < a[0] ? b[0] : a[0], b[1] < a[1] ? b[1] : a[1]}; }
inline float2 larger(float2 a, float2 b) { return float2{a[0] < b[0] ? b[0] : a[0], a[1] < b[1] ? b[1] : a[1]}; }
inline float2 absolute(float2 x) { return float2{absolute(x[0]), absolute(x[1])}; }
inline float2 exponential(float2 x) { return float2{exponential(x[0]), exponential(x[1])}; }
inline float2 fires(float2 v, float2 threshold) { return keptWhere(v > threshold, float2{1.0f, 1.0f}); }
inline float2 firesAt(float2 v, float2 threshold) { return keptWhere(v >= threshold, float2{1.0f, 1.0f}); }
inline float2 isLess(float2 a, float2 b) { return keptWhere(a < b, float2{1.0f, 1.0f}); }
inline float2 nonNegative(float2 x) { return keptWhere(x > float2{0.0f, 0.0f}, x); }
inline float2 maskedProduct(float2 a, float2 b) { return keptWhere(a != float2{0.0f, 0.0f}, a * b); }
inline float2 quotientOr(float2 a, float2 b, float2 otherwise) {
  return float2{quotientOr(a[0], b[0], otherwise[0]), quotientOr(a[1], b[1], otherwise[1])};
}
inline bool isZero(float2 x) { return x[0] == 0.0f && x[1] == 0.0f; }
inline float2 quotientOrZero(float2 a, float2 b) { return quotientOr(a, b, float2{0.0f, 0.0f}); }

}  // namespace snnjax
