// The operations of elementwise.cpp. Halves are computed as floats and rounded once, as the tile's half instructions do
// for + - * / and the square root.
#pragma once

#include <cmath>
#include <poplar/Vertex.hpp>
#include <type_traits>

#include "elementwise_cycles.hpp"

namespace snnjax {

// The type T is computed in.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, T, float>;
template <class T>
using Unsigned = std::make_unsigned_t<T>;
// Sums and products of integers wrap around on the tile; in C++ only unsigned ones do.
template <class T>
using Modular = std::conditional_t<std::is_integral_v<T>, unsigned, float>;

#define SNNJAX_UNARY(Name, WORK, EXPRESSION)  \
  struct Name {                               \
    static constexpr Work kWork = Work::WORK; \
    template <class T>                        \
    static T of(T element) {                  \
      const Wide<T> x = element;              \
      return static_cast<T>(EXPRESSION);      \
    }                                         \
  };
SNNJAX_UNARY(Absolute, Simple, x < 0 ? -Modular<T>(x) : Modular<T>(x))
SNNJAX_UNARY(Negate, Simple, -Modular<T>(x))
SNNJAX_UNARY(Square, Simple, Modular<T>(x) * Modular<T>(x))
SNNJAX_UNARY(Signum, Comparison, x > 0 ? 1 : (x < 0 ? -1 : x))
SNNJAX_UNARY(Ceil, Simple, std::ceil(x))
SNNJAX_UNARY(Floor, Simple, std::floor(x))
SNNJAX_UNARY(Trunc, Simple, std::trunc(x))
SNNJAX_UNARY(Round, Simple, std::round(x))
SNNJAX_UNARY(NearbyInt, Simple, std::nearbyint(x))
SNNJAX_UNARY(Inverse, Inverse, 1 / x)
SNNJAX_UNARY(SquareRoot, Root, std::sqrt(x))
SNNJAX_UNARY(ReciprocalRoot, Root, 1 / std::sqrt(x))
SNNJAX_UNARY(Exponent, Exponential, std::exp(x))
SNNJAX_UNARY(ExponentMinusOne, Exponential, std::expm1(x))
SNNJAX_UNARY(Logarithm, Logarithm, std::log(x))
SNNJAX_UNARY(LogarithmOnePlus, Logarithm, std::log1p(x))
SNNJAX_UNARY(Tanh, Tangent, std::tanh(x))
SNNJAX_UNARY(Sigmoid, Tangent, 1 / (1 + std::exp(-x)))
SNNJAX_UNARY(Sine, Library, std::sin(x))
SNNJAX_UNARY(Cosine, Library, std::cos(x))
SNNJAX_UNARY(Tan, Library, std::tan(x))
SNNJAX_UNARY(ArcSine, Library, std::asin(x))
SNNJAX_UNARY(CubicRoot, Library, std::cbrt(x))
SNNJAX_UNARY(ErrorFunction, Library, std::erf(x))
SNNJAX_UNARY(BitwiseNot, Simple, ~x)
SNNJAX_UNARY(LogicalNot, Simple, x == 0)
SNNJAX_UNARY(Popcount, Simple, __builtin_popcount(static_cast<unsigned>(x)))
SNNJAX_UNARY(CountLeadingZeros, Simple, x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)))
#undef SNNJAX_UNARY

#define SNNJAX_PREDICATE(Name, EXPRESSION)          \
  struct Name {                                     \
    static constexpr Work kWork = Work::Comparison; \
    template <class T>                              \
    static bool of(T element) {                     \
      const float x = element;                      \
      return EXPRESSION;                            \
    }                                               \
  };
SNNJAX_PREDICATE(IsFinite, std::isfinite(x))
SNNJAX_PREDICATE(IsInf, std::isinf(x))
SNNJAX_PREDICATE(IsNan, std::isnan(x))
#undef SNNJAX_PREDICATE

#define SNNJAX_BINARY(Name, WORK, EXPRESSION) \
  struct Name {                               \
    static constexpr Work kWork = Work::WORK; \
    template <class T>                        \
    static T of(T left, T right) {            \
      const Wide<T> a = left, b = right;      \
      return static_cast<T>(EXPRESSION);      \
    }                                         \
  };
SNNJAX_BINARY(Add, Simple, Modular<T>(a) + Modular<T>(b))
SNNJAX_BINARY(Subtract, Simple, Modular<T>(a) - Modular<T>(b))
SNNJAX_BINARY(Multiply, Simple, Modular<T>(a) * Modular<T>(b))
// A NaN on either side propagates.
SNNJAX_BINARY(Maximum, Simple, (a > b || a != a) ? a : b)
SNNJAX_BINARY(Minimum, Simple, (a < b || a != a) ? a : b)
SNNJAX_BINARY(Atan2, Library, std::atan2(a, b))
SNNJAX_BINARY(BitwiseAnd, Simple, a& b)
SNNJAX_BINARY(BitwiseOr, Simple, a | b)
SNNJAX_BINARY(BitwiseXor, Simple, a ^ b)
// A shift by 32 or more shifts out all bits.
SNNJAX_BINARY(ShiftLeft, Simple, Unsigned<T>(b) > 31 ? T(0) : static_cast<T>(Unsigned<T>(a) << Unsigned<T>(b)))
SNNJAX_BINARY(ShiftRight, Simple, Unsigned<T>(b) > 31 ? T(0) : static_cast<T>(Unsigned<T>(a) >> Unsigned<T>(b)))
SNNJAX_BINARY(ShiftRightSignExtend, Simple, static_cast<int>(a) >> (Unsigned<T>(b) > 31 ? 31 : static_cast<int>(b)))
#undef SNNJAX_BINARY

struct Divide {
  static constexpr Work kWork = Work::Division;
  template <class T>
  static T of(T left, T right) {
    const Wide<T> a = left, b = right;
    if constexpr (std::is_integral_v<T>) {
      // Undefined in C++, where the host would trap.
      if (b == 0) return 0;
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(-Modular<T>(a));
    }
    return static_cast<T>(a / b);
  }
};

struct Remainder {
  static constexpr Work kWork = Work::Division;
  template <class T>
  static T of(T left, T right) {
    if constexpr (std::is_integral_v<T>) {
      const bool traps = right == 0 || (std::is_signed_v<T> && right == static_cast<T>(-1));
      return traps ? 0 : static_cast<T>(left % right);
    } else {
      return static_cast<T>(std::fmod(static_cast<float>(left), static_cast<float>(right)));
    }
  }
};

struct Power {
  static constexpr Work kWork = Work::Power;
  template <class T>
  static T of(T base, T exponent) {
    if constexpr (std::is_integral_v<T>) {
      T result = 1;
      for (T i = 0; i < exponent; ++i) result = static_cast<T>(Unsigned<T>(result) * Unsigned<T>(base));
      return result;
    } else {
      return static_cast<T>(std::pow(static_cast<float>(base), static_cast<float>(exponent)));
    }
  }
};

#define SNNJAX_COMPARISON(Name, EXPRESSION)         \
  struct Name {                                     \
    static constexpr Work kWork = Work::Comparison; \
    template <class T>                              \
    static bool of(T a, T b) {                      \
      return EXPRESSION;                            \
    }                                               \
  };
SNNJAX_COMPARISON(Equal, a == b)
SNNJAX_COMPARISON(NotEqual, a != b)
SNNJAX_COMPARISON(Greater, a > b)
SNNJAX_COMPARISON(GreaterEqual, a >= b)
SNNJAX_COMPARISON(Less, a < b)
SNNJAX_COMPARISON(LessEqual, a <= b)
SNNJAX_COMPARISON(LogicalAnd, a&& b)
SNNJAX_COMPARISON(LogicalOr, a || b)
#undef SNNJAX_COMPARISON

}  // namespace snnjax
