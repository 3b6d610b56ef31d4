// Reductions of the middle dimension: [outer, rows, inner] -> [outer, inner]. Sums of halves are accumulated as floats.

#include "../combine.hpp"
#include "../vertex.hpp"
#include "cycles.hpp"

namespace snnjax {

template <class T>
constexpr cycles::Element kElementOf = std::is_same_v<T, float>  ? cycles::Element::Float
                                       : std::is_same_v<T, half> ? cycles::Element::Half
                                                                 : cycles::Element::Integer;

// What joins partial results.
template <class Op>
using Join = std::conditional_t<std::is_same_v<Op, SquareSum>, Sum, Op>;
template <class T>
constexpr bool kInPairs = std::is_same_v<Accumulator<T>, float>;

template <class Op>
float2 ofPair(float2 all, float2 x) {
  return float2{Op::of(all[0], x[0]), Op::of(all[1], x[1])};
}

// Over contiguous numbers; even and odd places are reduced apart, as in two lanes.
template <class Op, class T>
Accumulator<T> reducedRow(const T* from, unsigned rows) {
  using A = Accumulator<T>;
  constexpr A kNeutral = Op::template kNeutral<A>;
  if constexpr (kInPairs<T>) {
    if (rows % 2 == 0) {
      float2 pair = {kNeutral, kNeutral};
      for (unsigned row = 0; row < rows; row += 2) pair = ofPair<Op>(pair, Numbers<float2>::load(from + row));
      return Join<Op>::of(pair[0], pair[1]);
    }
  }
  A lanes[2] = {kNeutral, kNeutral};
  for (unsigned row = 0; row < rows; ++row) lanes[row % 2] = Op::of(lanes[row % 2], static_cast<A>(from[row]));
  return Join<Op>::of(lanes[0], lanes[1]);
}

// Over numbers `inner` apart: one column, or two neighbours. Returns the number of columns.
template <class Op, class T, class Result>
unsigned reduceColumns(const T* from, Result* to, unsigned rows, unsigned inner) {
  using A = Accumulator<T>;
  constexpr A kNeutral = Op::template kNeutral<A>;
  if constexpr (kInPairs<T>) {
    if (inner % 2 == 0) {
      float2 pair = {kNeutral, kNeutral};
      for (unsigned row = 0; row < rows; ++row) pair = ofPair<Op>(pair, Numbers<float2>::load(from + row * inner));
      Numbers<float2>::store(to, pair);
      return 2;
    }
  }
  A result = kNeutral;
  for (unsigned row = 0; row < rows; ++row) result = Op::of(result, static_cast<A>(from[row * inner]));
  *to = static_cast<Result>(result);
  return 1;
}

template <class Op, class T, class Result>
class Reduce : public poplar::MultiVertex {
 public:
  In<T> in;         // [outer, rows, inner]
  Out<Result> out;  // [outer, inner]
  unsigned outer, rows, inner;

  void compute(unsigned worker) {
    const Range share = shareOf(outer * inner, worker, larger(2, kPerWord<Result>));
    if (share.first == share.last) return;
    if (inner == 1) {
      for (const unsigned i : share) out[i] = static_cast<Result>(reducedRow<Op>(&in[i * rows], rows));
      return;
    }
    unsigned column = share.first % inner, first = share.first / inner * rows * inner;
    for (unsigned i = share.first; i < share.last;) {
      const unsigned taken = reduceColumns<Op>(&in[first + column], &out[i], rows, inner);
      i += taken;
      column += taken;
      if (column == inner) {
        column = 0;
        first += rows * inner;
      }
    }
  }
};

template <class Op, class T, class Result>
std::uint64_t workerCycles(const Reduce<Op, T, Result>& vertex, unsigned worker) {
  const Range share = shareOf(vertex.outer * vertex.inner, worker, larger(2, kPerWord<Result>));
  return cycles::reduce(share.count(), vertex.rows, vertex.inner, kElementOf<T>);
}

#define SNNJAX_REDUCE_NUMBER(Op)                \
  SNNJAX_INSTANCES_OF_FLOATS(Reduce, Op, float) \
  SNNJAX_INSTANCES_OF_FLOATS(Reduce, Op, half)  \
  template class Reduce<Op, int, int>;          \
  template class Reduce<Op, unsigned, unsigned>;
SNNJAX_REDUCE_NUMBER(Sum)
SNNJAX_REDUCE_NUMBER(SquareSum)
SNNJAX_REDUCE_NUMBER(Product)
SNNJAX_REDUCE_NUMBER(Largest)
SNNJAX_REDUCE_NUMBER(Smallest)
#undef SNNJAX_REDUCE_NUMBER
template class Reduce<AllOf, bool, bool>;
template class Reduce<AnyOf, bool, bool>;
template class Reduce<BitAnd, unsigned, unsigned>;
template class Reduce<BitAnd, unsigned char, unsigned char>;
template class Reduce<BitOr, unsigned, unsigned>;
template class Reduce<BitOr, unsigned short, unsigned short>;
template class Reduce<BitOr, unsigned char, unsigned char>;
template class Reduce<BitXor, unsigned, unsigned>;
template class Reduce<BitXor, unsigned char, unsigned char>;

}  // namespace snnjax
