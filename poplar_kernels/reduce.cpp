// Reductions of the middle dimension: [outer, rows, inner] -> [outer, inner]. Sums of halves are accumulated as floats.
#include "reduce_cycles.hpp"

#include <type_traits>

#include "fields.hpp"
#include "workers.hpp"

namespace snnjax {

namespace {

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

template <class T>
constexpr cycles::Element kElementOf = std::is_same_v<T, float>  ? cycles::Element::Float
                                       : std::is_same_v<T, half> ? cycles::Element::Half
                                                                 : cycles::Element::Integer;

}  // namespace

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

template <class Op, class T, class Result>
class Reduce : public poplar::MultiVertex {
 public:
  In<T> in;         // [outer, rows, inner]
  Out<Result> out;  // [outer, inner]
  unsigned outer, rows, inner;

  bool compute(unsigned worker) {
    using A = Accumulator<T>;
    const Range share = shareOf(outer * inner, worker, larger(2, kPerWord<Result>));
    if (share.first == share.last) return true;
    unsigned column = share.first % inner, first = share.first / inner * rows * inner;
    for (unsigned i = share.first; i < share.last; ++i) {
      A result = Op::template kNeutral<A>;
      for (unsigned row = 0; row < rows; ++row)
        result = Op::of(result, static_cast<A>(in[first + row * inner + column]));
      out[i] = static_cast<Result>(result);
      if (++column == inner) {
        column = 0;
        first += rows * inner;
      }
    }
    return true;
  }
};

template <class Op, class T, class Result>
std::uint64_t workerCycles(const Reduce<Op, T, Result>& vertex, unsigned worker) {
  const Range share = shareOf(vertex.outer * vertex.inner, worker, larger(2, kPerWord<Result>));
  return cycles::reduce(share.last - share.first, vertex.rows, vertex.inner, kElementOf<T>);
}

#define SNNJAX_REDUCE_NUMBER(Op)           \
  template class Reduce<Op, float, float>; \
  template class Reduce<Op, float, half>;  \
  template class Reduce<Op, half, float>;  \
  template class Reduce<Op, half, half>;   \
  template class Reduce<Op, int, int>;     \
  template class Reduce<Op, unsigned, unsigned>;
SNNJAX_REDUCE_NUMBER(Sum)
SNNJAX_REDUCE_NUMBER(SquareSum)
SNNJAX_REDUCE_NUMBER(Product)
SNNJAX_REDUCE_NUMBER(Largest)
SNNJAX_REDUCE_NUMBER(Smallest)
#undef SNNJAX_REDUCE_NUMBER
template class Reduce<AllOf, bool, bool>;
template class Reduce<AnyOf, bool, bool>;

}  // namespace snnjax
