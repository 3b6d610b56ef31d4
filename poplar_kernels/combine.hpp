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

template <class T, class Limits = std::numeric_limits<T>>
constexpr T kLargest = Limits::has_infinity ? Limits::infinity() : Limits::max();
template <class T, class Limits = std::numeric_limits<T>>
constexpr T kLowest = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();

// The operations: the neutral element of an accumulator A, and the one that follows from an accumulated value and one
// more number x. Of a maximum or minimum a NaN wins; bits may be those of Booleans.
#define SNNJAX_OPERATION(name, neutral, result)            \
  struct name {                                            \
    template <class A>                                     \
    static constexpr A kNeutral = static_cast<A>(neutral); \
    template <class A>                                     \
    static A of(A all, A x) {                              \
      return static_cast<A>(result);                       \
    }                                                      \
  };
SNNJAX_OPERATION(Sum, 0, Modular<A>(all) + Modular<A>(x))
SNNJAX_OPERATION(SquareSum, 0, Modular<A>(all) + Modular<A>(x) * Modular<A>(x))
SNNJAX_OPERATION(Product, 1, Modular<A>(all) * Modular<A>(x))
SNNJAX_OPERATION(Largest, kLowest<A>, (x > all || x != x) ? x : all)
SNNJAX_OPERATION(Smallest, kLargest<A>, (x < all || x != x) ? x : all)
SNNJAX_OPERATION(AllOf, true, all&& x)
SNNJAX_OPERATION(AnyOf, false, all || x)
SNNJAX_OPERATION(BitAnd, ~A(0), all& x)
SNNJAX_OPERATION(BitOr, 0, all | x)
SNNJAX_OPERATION(BitXor, 0, all ^ x)
#undef SNNJAX_OPERATION

}  // namespace snnjax
