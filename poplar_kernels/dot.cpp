// Dense matrix products of the blocks that a tile holds, as they are or with one operand transposed (the products of a
// backward pass). Sums have the type of the output: float for either operands, or half.
#include "dot_cycles.hpp"

#include <type_traits>

#include "fields.hpp"
#include "numbers.hpp"
#include "workers.hpp"

namespace snnjax {

namespace {

constexpr unsigned kColumns = cycles::kDotColumns;

// Blocks of one row and up to 8 columns of an output, shared by the workers: in pairs of rows where a row ends inside
// a 32-bit word.
template <class Result>
struct Blocks {
  unsigned rows, columns;

  unsigned perRow() const { return (columns + kColumns - 1) / kColumns; }
  Range shareOfWorker(unsigned worker) const {
    return shareOf(rows * perRow(), worker, columns % kPerWord<Result> == 0 ? 1 : kPerWord<Result> * perRow());
  }
  // Calls body(row, first column, number of columns) for each of the worker's blocks.
  template <class Body>
  void forEach(unsigned worker, Body&& body) const {
    const Range share = shareOfWorker(worker);
    for (unsigned block = share.first; block < share.last; ++block) {
      const unsigned first = block % perRow() * kColumns;
      body(block / perRow(), first, smaller(kColumns, columns - first));
    }
  }
};

// What sums of type Result are made in: one number, and as many as a 64-bit register holds.
template <class Result>
struct SumsOf;
template <>
struct SumsOf<float> {
  using Number = float;
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
  using Vector = float2;
#endif
};
template <>
struct SumsOf<half> {
  using Number = half;
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
  using Vector = half4;
#endif
};

// to[j] (+)= sum over k of a[k * step] * b[k * columns + j], in the order of k, for kNumbers neighbouring N of columns.
template <class N, unsigned kNumbers, class T, class Result>
void addProducts(const T* a, unsigned step, const T* b, unsigned columns, unsigned depth, Result* to, bool accumulate) {
  using Of = Numbers<N>;
  N sums[kNumbers];
  for (unsigned i = 0; i < kNumbers; ++i) {
    sums[i] = accumulate ? Of::load(to + i * Of::kCount) : Of::fill(static_cast<Result>(0.0f));
  }
  for (unsigned k = 0; k < depth; ++k) {
    const N x = Of::fill(static_cast<Result>(a[k * step]));
    for (unsigned i = 0; i < kNumbers; ++i) {
      const N product = x * Of::load(b + k * columns + i * Of::kCount);
      sums[i] = sums[i] + product;
    }
  }
  for (unsigned i = 0; i < kNumbers; ++i) Of::store(to + i * Of::kCount, sums[i]);
}

// The same for a block of `count` columns: at once if it is full, else number by number.
template <class N, class T, class Result>
void addBlock(const T* a, unsigned step, const T* b, unsigned columns, unsigned depth, Result* to, unsigned count,
              bool accumulate) {
  constexpr unsigned kCount = Numbers<N>::kCount;
  if (count == kColumns) return addProducts<N, kColumns / kCount>(a, step, b, columns, depth, to, accumulate);
  for (unsigned j = 0; j < count; j += kCount) {
    addProducts<N, 1>(a, step, b + j, columns, depth, to + j, accumulate);
  }
}

// Vectors where every row of b begins at one.
template <class T, class Result>
void addRows(const T* a, unsigned step, const T* b, unsigned columns, unsigned depth, Result* to, unsigned count,
             bool accumulate) {
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
  using Vector = typename SumsOf<Result>::Vector;
  if (columns % Numbers<Vector>::kCount == 0) {
    return addBlock<Vector>(a, step, b, columns, depth, to, count, accumulate);
  }
#endif
  addBlock<typename SumsOf<Result>::Number>(a, step, b, columns, depth, to, count, accumulate);
}

// to[j] (+)= sum over k of a[k] * b[j * depth + k] for kRows rows of b. Even k and odd ones are summed apart, as two
// lanes do.
template <unsigned kRows, class T, class Result>
void addDots(const T* a, const T* b, unsigned depth, Result* to, bool accumulate) {
  float even[kRows] = {}, odd[kRows] = {};
  unsigned k = 0;
  for (; k + 1 < depth; k += 2) {
    for (unsigned j = 0; j < kRows; ++j) {
      even[j] += toFloat(a[k]) * toFloat(b[j * depth + k]);
      odd[j] += toFloat(a[k + 1]) * toFloat(b[j * depth + k + 1]);
    }
  }
  for (unsigned j = 0; j < kRows; ++j) {
    if (k < depth) even[j] += toFloat(a[k]) * toFloat(b[j * depth + k]);
    to[j] = static_cast<Result>((accumulate ? toFloat(to[j]) : 0.0f) + (even[j] + odd[j]));
  }
}

#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
// The same for an even depth.
template <unsigned kRows, class T, class Result>
void addDotsInPairs(const T* a, const T* b, unsigned depth, Result* to, bool accumulate) {
  using Of = Numbers<float2>;
  float2 sums[kRows] = {};
  for (unsigned k = 0; k < depth; k += 2) {
    const float2 pair = Of::load(a + k);
    for (unsigned j = 0; j < kRows; ++j) sums[j] += pair * Of::load(b + j * depth + k);
  }
  for (unsigned j = 0; j < kRows; ++j) {
    to[j] = static_cast<Result>((accumulate ? toFloat(to[j]) : 0.0f) + (sums[j][0] + sums[j][1]));
  }
}
#endif

// The same for `count` rows of b: all at once if they fill a block, else one by one.
template <class T, class Result>
void addDotBlock(const T* a, const T* b, unsigned depth, Result* to, unsigned count, bool accumulate) {
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
  if (depth % 2 == 0) {
    if (count == kColumns) return addDotsInPairs<kColumns>(a, b, depth, to, accumulate);
    for (unsigned j = 0; j < count; ++j) addDotsInPairs<1>(a, b + j * depth, depth, to + j, accumulate);
    return;
  }
#endif
  if (count == kColumns) return addDots<kColumns>(a, b, depth, to, accumulate);
  for (unsigned j = 0; j < count; ++j) addDots<1>(a, b + j * depth, depth, to + j, accumulate);
}

}  // namespace

// out (+)= a b
template <class T, class Result>
class Dot : public poplar::MultiVertex {
 public:
  In<T> a;            // [rows, depth]
  In<T> b;            // [depth, columns]
  InOut<Result> out;  // [rows, columns]
  unsigned rows, depth, columns;
  bool accumulate;  // adds to what is there

  bool compute(unsigned worker) {
    Blocks<Result>{rows, columns}.forEach(worker, [this](unsigned row, unsigned first, unsigned count) {
      addRows(&a[row * depth], 1, &b[first], columns, depth, &out[row * columns + first], count, accumulate);
    });
    return true;
  }
};

// out (+)= a^T b
template <class T, class Result>
class TransposedDot : public poplar::MultiVertex {
 public:
  In<T> a;            // [depth, rows]
  In<T> b;            // [depth, columns]
  InOut<Result> out;  // [rows, columns]
  unsigned rows, depth, columns;
  bool accumulate;  // adds to what is there

  bool compute(unsigned worker) {
    Blocks<Result>{rows, columns}.forEach(worker, [this](unsigned row, unsigned first, unsigned count) {
      addRows(&a[row], rows, &b[first], columns, depth, &out[row * columns + first], count, accumulate);
    });
    return true;
  }
};

// out (+)= a b^T
template <class T, class Result>
class DotTransposed : public poplar::MultiVertex {
 public:
  In<T> a;            // [rows, depth]
  In<T> b;            // [columns, depth]
  InOut<Result> out;  // [rows, columns]
  unsigned rows, depth, columns;
  bool accumulate;  // adds to what is there

  bool compute(unsigned worker) {
    Blocks<Result>{rows, columns}.forEach(worker, [this](unsigned row, unsigned first, unsigned count) {
      addDotBlock(&a[row * depth], &b[first * depth], depth, &out[row * columns + first], count, accumulate);
    });
    return true;
  }
};

namespace {

template <class T, class Result, class V>
std::uint64_t axpyCycles(const V& vertex, unsigned worker) {
  std::uint64_t slots = cycles::kDotPrologue;
  Blocks<Result>{vertex.rows, vertex.columns}.forEach(worker, [&](unsigned, unsigned, unsigned count) {
    slots +=
        cycles::dotBlock(count, vertex.columns, vertex.depth, std::is_same_v<T, half>, std::is_same_v<Result, half>);
  });
  return slots;
}

}  // namespace

template <class T, class Result>
std::uint64_t workerCycles(const Dot<T, Result>& vertex, unsigned worker) {
  return axpyCycles<T, Result>(vertex, worker);
}

template <class T, class Result>
std::uint64_t workerCycles(const TransposedDot<T, Result>& vertex, unsigned worker) {
  return axpyCycles<T, Result>(vertex, worker);
}

template <class T, class Result>
std::uint64_t workerCycles(const DotTransposed<T, Result>& vertex, unsigned worker) {
  std::uint64_t slots = cycles::kDotPrologue;
  Blocks<Result>{vertex.rows, vertex.columns}.forEach(worker, [&](unsigned, unsigned, unsigned count) {
    slots += cycles::transposedBlock(count, vertex.depth, std::is_same_v<T, half>);
  });
  return slots;
}

template class Dot<float, float>;
template class Dot<half, float>;
template class Dot<half, half>;
template class TransposedDot<float, float>;
template class TransposedDot<half, float>;
template class DotTransposed<float, float>;
template class DotTransposed<half, float>;

}  // namespace snnjax
