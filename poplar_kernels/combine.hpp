// The operations that reductions, running sums and scatters are made of: an accumulated value and one more number.
#pragma once

#include <type_traits>

#include "numbers.hpp"

namespace snnjax {

// The type a result is computed in before it is stored as T.
template <class T>
using Accumulator = std::conditional_t<std::is_same_v<T, half>, float, T>;
// Sums and products of integers wrap around.
template <class T>
using Modular = std::conditional_t<std::is_same_v<T, int>, unsigned, T>;

template <class T>
constexpr T kLargest = std::is_same_v<T, float>      ? static_cast<T>(__builtin_inff())
                       : std::is_same_v<T, unsigned> ? static_cast<T>(0xffffffffU)
                                                     : static_cast<T>(0x7fffffff);
template <class T>
constexpr T kLowest = std::is_same_v<T, float>      ? static_cast<T>(-__builtin_inff())
                      : std::is_same_v<T, unsigned> ? static_cast<T>(0)
                                                    : static_cast<T>(-0x7fffffff - 1);

struct Sum {
  template <class A>
  static constexpr A kNeutral = 0;
  template <class A>
  static A of(A sum, A x) {
    return static_cast<A>(Modular<A>(sum) + Modular<A>(x));
  }
};
struct SquareSum {
  template <class A>
  static constexpr A kNeutral = 0;
  template <class A>
  static A of(A sum, A x) {
    return static_cast<A>(Modular<A>(sum) + Modular<A>(x) * Modular<A>(x));
  }
};
struct Product {
  template <class A>
  static constexpr A kNeutral = 1;
  template <class A>
  static A of(A product, A x) {
    return static_cast<A>(Modular<A>(product) * Modular<A>(x));
  }
};
// NaN wins.
struct Largest {
  template <class A>
  static constexpr A kNeutral = kLowest<A>;
  template <class A>
  static A of(A best, A x) {
    return (x > best || x != x) ? x : best;
  }
};
struct Smallest {
  template <class A>
  static constexpr A kNeutral = kLargest<A>;
  template <class A>
  static A of(A best, A x) {
    return (x < best || x != x) ? x : best;
  }
};
struct AllOf {
  template <class A>
  static constexpr A kNeutral = true;
  template <class A>
  static A of(A all, A x) {
    return all && x;
  }
};
struct AnyOf {
  template <class A>
  static constexpr A kNeutral = false;
  template <class A>
  static A of(A any, A x) {
    return any || x;
  }
};
// Of bits, those of Booleans included.
struct BitAnd {
  template <class A>
  static constexpr A kNeutral = static_cast<A>(~A(0));
  template <class A>
  static A of(A all, A x) {
    return static_cast<A>(all & x);
  }
};
struct BitOr {
  template <class A>
  static constexpr A kNeutral = 0;
  template <class A>
  static A of(A any, A x) {
    return static_cast<A>(any | x);
  }
};
struct BitXor {
  template <class A>
  static constexpr A kNeutral = 0;
  template <class A>
  static A of(A odd, A x) {
    return static_cast<A>(odd ^ x);
  }
};

}  // namespace snnjax
