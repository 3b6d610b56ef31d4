// The loops of dense matrix products, for blocks of up to 8 columns of the output. Sums have its type.
#pragma once

#include "dot_cycles.hpp"
#include "numbers.hpp"

namespace snnjax {

using cycles::kDotColumns;

// to[j] (+)= sum over k of a[k * step] * b[k * columns + j], in the order of k, for kNumbers neighbouring N of columns.
template <class N, unsigned kNumbers, class T, class Result>
inline void addProducts(const T* a, unsigned step, const T* b, unsigned columns, unsigned depth, Result* to,
                        bool accumulate) {
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
inline void addBlock(const T* a, unsigned step, const T* b, unsigned columns, unsigned depth, Result* to,
                     unsigned count, bool accumulate) {
  constexpr unsigned kCount = Numbers<N>::kCount;
  if (count == kDotColumns) return addProducts<N, kDotColumns / kCount>(a, step, b, columns, depth, to, accumulate);
  for (unsigned j = 0; j < count; j += kCount) {
    addProducts<N, 1>(a, step, b + j, columns, depth, to + j, accumulate);
  }
}

// Vectors where every row of b begins at one.
template <class T, class Result>
inline void addRows(const T* a, unsigned step, const T* b, unsigned columns, unsigned depth, Result* to, unsigned count,
                    bool accumulate) {
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
  using Vector = typename RegisterOf<Result>::Type;
  if (columns % Numbers<Vector>::kCount == 0) {
    return addBlock<Vector>(a, step, b, columns, depth, to, count, accumulate);
  }
#endif
  addBlock<Result>(a, step, b, columns, depth, to, count, accumulate);
}

// to[j] (+)= sum over k of a[k] * b[j * depth + k] for kRows rows of b. Even k and odd ones are summed apart, as two
// lanes do.
template <unsigned kRows, class T, class Result>
inline void addDots(const T* a, const T* b, unsigned depth, Result* to, bool accumulate) {
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
inline void addDotsInPairs(const T* a, const T* b, unsigned depth, Result* to, bool accumulate) {
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
inline void addDotBlock(const T* a, const T* b, unsigned depth, Result* to, unsigned count, bool accumulate) {
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
  if (depth % 2 == 0) {
    if (count == kDotColumns) return addDotsInPairs<kDotColumns>(a, b, depth, to, accumulate);
    for (unsigned j = 0; j < count; ++j) addDotsInPairs<1>(a, b + j * depth, depth, to + j, accumulate);
    return;
  }
#endif
  if (count == kDotColumns) return addDots<kDotColumns>(a, b, depth, to, accumulate);
  for (unsigned j = 0; j < count; ++j) addDots<1>(a, b + j * depth, depth, to + j, accumulate);
}

}  // namespace snnjax
