// Operations element by element. An operand of one element is broadcast.
#include "../fields.hpp"
#include "../numbers.hpp"
#include "../workers.hpp"
#include "elementwise_ops.hpp"

namespace snnjax {

namespace {

template <class T>
constexpr Kind kKindOf = std::is_same_v<T, float>  ? Kind::Float
                         : std::is_same_v<T, half> ? Kind::Half
                                                   : Kind::Integer;

// The unit of a worker's share: whole 64-bit vectors, and whole 32-bit words of the output.
template <class T, class Result>
constexpr unsigned kUnit = larger(cycles::vectorWidth(kKindOf<T>), kPerWord<Result>);

// The one element of a single operand, kept in a register.
template <class T>
struct Single {
  T element;
  T operator[](unsigned) const { return element; }
};

#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
// Elements i ... of an operand.
template <class Of, class T>
auto vectorAt(const T* operand, unsigned i) {
  return Of::load(operand + i);
}
template <class Of, class T>
auto vectorAt(Single<T> operand, unsigned) {
  return Of::fill(operand.element);
}

// The operation lane by lane; the compiler fuses it into one on the whole register where the tile has such an
// instruction.
template <class Op, class V, class... More>
V eachLane(Op op, V first, More... more) {
  V result = first;
  for (unsigned i = 0; i < sizeof(V) / sizeof(first[0]); ++i) result[i] = op.of(first[i], more[i]...);
  return result;
}
#endif

// out[i] = op(operands[i] ...) for a worker's share, which starts at a vector boundary.
template <class T, class Op, class Result, class... Operands>
void mapElements(Range share, Op op, Result* out, Operands... operands) {
  unsigned i = share.first;
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
  if constexpr (kKindOf<T> != Kind::Integer && std::is_same_v<T, Result>) {
    using Of = Numbers<typename RegisterOf<T>::Type>;
    for (; i + Of::kCount <= share.last; i += Of::kCount) {
      Of::store(out + i, eachLane(op, vectorAt<Of>(operands, i)...));
    }
  }
#endif
  for (; i < share.last; ++i) out[i] = op.of(operands[i]...);
}

}  // namespace

// out = op(in)
template <class Op, class T>
class Unary : public poplar::MultiVertex {
 public:
  using Result = decltype(Op::of(T{}));
  In<T> in;         // [count]
  Out<Result> out;  // [count]
  unsigned count;

  bool compute(unsigned worker) {
    mapElements<T>(shareOf(count, worker, kUnit<T, Result>), Op{}, &out[0], &in[0]);
    return true;
  }
};

// out = op(in1, in2)
template <class Op, class T>
class Binary : public poplar::MultiVertex {
 public:
  using Result = decltype(Op::of(T{}, T{}));
  In<T> in1;        // [count], or [1] if single1
  In<T> in2;        // [count], or [1] if single2
  Out<Result> out;  // [count]
  unsigned count;
  bool single1, single2;

  bool compute(unsigned worker) {
    const Range share = shareOf(count, worker, kUnit<T, Result>);
    if (single1) {
      mapElements<T>(share, Op{}, &out[0], Single<T>{in1[0]}, &in2[0]);
    } else if (single2) {
      mapElements<T>(share, Op{}, &out[0], &in1[0], Single<T>{in2[0]});
    } else {
      mapElements<T>(share, Op{}, &out[0], &in1[0], &in2[0]);
    }
    return true;
  }
};

// out = in3 ? in1 : in2
template <class T>
class Select : public poplar::MultiVertex {
 public:
  In<T> in1;     // [count], or [1] if single1
  In<T> in2;     // [count], or [1] if single2
  In<bool> in3;  // [count], or [1] if single3
  Out<T> out;    // [count]
  unsigned count;
  bool single1, single2, single3;

  bool compute(unsigned worker) {
    const unsigned step1 = single1 ? 0 : 1, step2 = single2 ? 0 : 1, step3 = single3 ? 0 : 1;
    const Range share = shareOf(count, worker, kUnit<T, T>);
    for (unsigned i = share.first; i < share.last; ++i) {
      out[i] = in3[i * step3] ? in1[i * step1] : in2[i * step2];
    }
    return true;
  }
};

namespace {

template <class V>
std::uint64_t shareSize(const V& vertex, unsigned worker, unsigned unit) {
  const Range share = shareOf(vertex.count, worker, unit);
  return share.last - share.first;
}

}  // namespace

template <class Op, class T>
std::uint64_t workerCycles(const Unary<Op, T>& vertex, unsigned worker) {
  constexpr unsigned unit = kUnit<T, typename Unary<Op, T>::Result>;
  return cycles::elementwise(shareSize(vertex, worker, unit), Op::kWork, kKindOf<T>, 1);
}

template <class Op, class T>
std::uint64_t workerCycles(const Binary<Op, T>& vertex, unsigned worker) {
  constexpr unsigned unit = kUnit<T, typename Binary<Op, T>::Result>;
  const unsigned loads = vertex.single1 || vertex.single2 ? 1 : 2;
  return cycles::elementwise(shareSize(vertex, worker, unit), Op::kWork, kKindOf<T>, loads);
}

template <class T>
std::uint64_t workerCycles(const Select<T>& vertex, unsigned worker) {
  return cycles::select(shareSize(vertex, worker, kUnit<T, T>));
}

#define SNNJAX_UNARY_REAL(Op)      \
  template class Unary<Op, float>; \
  template class Unary<Op, half>;
SNNJAX_UNARY_REAL(Absolute)
SNNJAX_UNARY_REAL(Negate)
SNNJAX_UNARY_REAL(Square)
SNNJAX_UNARY_REAL(Signum)
SNNJAX_UNARY_REAL(Ceil)
SNNJAX_UNARY_REAL(Floor)
SNNJAX_UNARY_REAL(Trunc)
SNNJAX_UNARY_REAL(Round)
SNNJAX_UNARY_REAL(NearbyInt)
SNNJAX_UNARY_REAL(Inverse)
SNNJAX_UNARY_REAL(SquareRoot)
SNNJAX_UNARY_REAL(ReciprocalRoot)
SNNJAX_UNARY_REAL(Exponent)
SNNJAX_UNARY_REAL(ExponentMinusOne)
SNNJAX_UNARY_REAL(Logarithm)
SNNJAX_UNARY_REAL(LogarithmOnePlus)
SNNJAX_UNARY_REAL(Tanh)
SNNJAX_UNARY_REAL(Sigmoid)
SNNJAX_UNARY_REAL(Sine)
SNNJAX_UNARY_REAL(Cosine)
SNNJAX_UNARY_REAL(Tan)
SNNJAX_UNARY_REAL(ArcSine)
SNNJAX_UNARY_REAL(CubicRoot)
SNNJAX_UNARY_REAL(ErrorFunction)
SNNJAX_UNARY_REAL(IsFinite)
SNNJAX_UNARY_REAL(IsInf)
SNNJAX_UNARY_REAL(IsNan)
#undef SNNJAX_UNARY_REAL
template class Unary<Absolute, int>;
template class Unary<Negate, int>;
template class Unary<Signum, int>;
template class Unary<LogicalNot, bool>;
#define SNNJAX_UNARY_INTEGER(Op) \
  template class Unary<Op, int>; \
  template class Unary<Op, unsigned>;
SNNJAX_UNARY_INTEGER(Square)
SNNJAX_UNARY_INTEGER(BitwiseNot)
SNNJAX_UNARY_INTEGER(Popcount)
SNNJAX_UNARY_INTEGER(CountLeadingZeros)
#undef SNNJAX_UNARY_INTEGER

#define SNNJAX_BINARY_REAL(Op)      \
  template class Binary<Op, float>; \
  template class Binary<Op, half>;
#define SNNJAX_BINARY_INTEGER(Op) \
  template class Binary<Op, int>; \
  template class Binary<Op, unsigned>;
#define SNNJAX_BINARY_NUMBER(Op) \
  SNNJAX_BINARY_REAL(Op)         \
  SNNJAX_BINARY_INTEGER(Op)
SNNJAX_BINARY_NUMBER(Add)
SNNJAX_BINARY_NUMBER(Subtract)
SNNJAX_BINARY_NUMBER(Multiply)
SNNJAX_BINARY_NUMBER(Divide)
SNNJAX_BINARY_NUMBER(Remainder)
SNNJAX_BINARY_NUMBER(Maximum)
SNNJAX_BINARY_NUMBER(Minimum)
SNNJAX_BINARY_NUMBER(Power)
SNNJAX_BINARY_REAL(Atan2)
SNNJAX_BINARY_INTEGER(BitwiseAnd)
SNNJAX_BINARY_INTEGER(BitwiseOr)
SNNJAX_BINARY_INTEGER(BitwiseXor)
SNNJAX_BINARY_INTEGER(ShiftLeft)
SNNJAX_BINARY_INTEGER(ShiftRight)
SNNJAX_BINARY_INTEGER(ShiftRightSignExtend)
SNNJAX_BINARY_NUMBER(Equal)
SNNJAX_BINARY_NUMBER(NotEqual)
SNNJAX_BINARY_NUMBER(Greater)
SNNJAX_BINARY_NUMBER(GreaterEqual)
SNNJAX_BINARY_NUMBER(Less)
SNNJAX_BINARY_NUMBER(LessEqual)
template class Binary<Equal, bool>;
template class Binary<NotEqual, bool>;
template class Binary<LogicalAnd, bool>;
template class Binary<LogicalOr, bool>;
#undef SNNJAX_BINARY_NUMBER
#undef SNNJAX_BINARY_INTEGER
#undef SNNJAX_BINARY_REAL

template class Select<float>;
template class Select<half>;
template class Select<int>;
template class Select<unsigned>;
template class Select<bool>;

}  // namespace snnjax
