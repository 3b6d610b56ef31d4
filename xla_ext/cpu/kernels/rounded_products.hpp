// Dense products of numbers rounded to bfloat16, with sums in float32.
//
// AVX-512 has an instruction for them in its BF16 extension (Cooper Lake, Sapphire Rapids, Zen 4 and newer): it
// multiplies pairs of numbers and adds both products to one sum, which is twice the rate of float32. There the factors
// are stored in pairs, two in the place of one float32: neighbours in a row; in a panel, rows 2p and 2p + 1 of each
// column. Elsewhere they are rounded in place, and multiplied as float32.
#pragma once

#include "products.hpp"

namespace snnjax::SNNJAX_ISA {

inline void roundNumbers(const float* from, Index count, float* to) {
  Index i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, roundToBfloat16(load(from + i)));
  if (i < count) storePart(to + i, roundToBfloat16(loadPart(from + i, count - i)), count - i);
}

#if defined(__AVX512F__)

inline bool hasPairs() {
  static const bool has = __builtin_cpu_supports("avx512bf16");
  return has;
}

// The bits of the nearest bfloat16 numbers.
inline Ints halvesOf(Floats x) { return ((Ints)roundToBfloat16(x) >> 16) & 0xffff; }

// `to` has room for whole vectors.
inline void pairRow(const float* from, Index depth, float* to) {
  for (Index k = 0; k < depth; k += kLanes) {
    const Floats own = depth - k < kLanes ? loadPart(from + k, depth - k) : load(from + k);
    const Halves halves = __builtin_convertvector(halvesOf(own), Halves);
    __builtin_memcpy(to + k / 2, &halves, sizeof halves);
  }
}

// One panel of `width` columns, whose pairs take the place of its first half.
inline void pairPanel(float* panel, Index depth, Index width) {
  for (Index k = 0; k < depth; k += 2) {
    for (Index column = 0; column < width; column += kLanes) {
      const Ints even = halvesOf(load(panel + k * width + column));
      const Ints odd = k + 1 < depth ? halvesOf(load(panel + (k + 1) * width + column)) : Ints{};
      store(panel + k / 2 * width + column, (Floats)(even | odd << 16));
    }
  }
}

// As `multiplyTile`, of pairs; `adds` to what `out` holds.
template <int kRows, int kVectors>
__attribute__((target("avx512bf16"))) inline void multiplyPairs(const float* const* rows, Index pairs,
                                                                const float* panel, bool adds, Rows<float> out) {
  __m512 sums[kRows][kVectors];
  SNNJAX_UNROLL
  for (int r = 0; r < kRows; ++r) {
    SNNJAX_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      sums[r][i] = adds ? _mm512_loadu_ps(out.row(r) + i * kLanes) : _mm512_setzero_ps();
    }
  }
  for (Index p = 0; p < pairs; ++p) {
    __m512 own[kVectors];
    SNNJAX_UNROLL
    for (int i = 0; i < kVectors; ++i) own[i] = _mm512_loadu_ps(panel + (p * kVectors + i) * kLanes);
    SNNJAX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const auto factors = (__m512bh)_mm512_set1_ps(rows[r][p]);
      SNNJAX_UNROLL
      for (int i = 0; i < kVectors; ++i) sums[r][i] = _mm512_dpbf16_ps(sums[r][i], factors, (__m512bh)own[i]);
    }
  }
  SNNJAX_UNROLL
  for (int r = 0; r < kRows; ++r) {
    SNNJAX_UNROLL
    for (int i = 0; i < kVectors; ++i) _mm512_storeu_ps(out.row(r) + i * kLanes, sums[r][i]);
  }
}

template <int kRows, int kVectors>
inline void multiplyPairsRest(const float* const* rows, Index count, Index pairs, const float* panel, bool adds,
                              Rows<float> out) {
  if constexpr (kRows > 0) {
    if (count == kRows) return multiplyPairs<kRows, kVectors>(rows, pairs, panel, adds, out);
    multiplyPairsRest<kRows - 1, kVectors>(rows, count, pairs, panel, adds, out);
  }
}

// As `multiplyPanel`: as many pairs of its rows at a time as stay in the first-level cache.
template <int kVectors>
inline void multiplyPairedPanel(Rows<const float> rounded, Index rows, Index pairs, const float* panel,
                                Rows<float> out) {
  constexpr Index kPairs = 16384 / (kVectors * static_cast<Index>(sizeof(Floats)));
  Index first = 0;
  do {  // sums of nothing are written, too
    const Index count = pairs - first < kPairs ? pairs - first : kPairs;
    for (Index r = 0; r < rows; r += kTileRows) {
      const Index left = rows - r < kTileRows ? rows - r : kTileRows;
      const float* own[kTileRows];
      for (Index i = 0; i < left; ++i) own[i] = rounded.row(r + i) + first;
      multiplyPairsRest<kTileRows, kVectors>(own, left, count, panel + first * kVectors * kLanes, first > 0,
                                             {out.row(r), out.stride});
    }
    first += kPairs;
  } while (first < pairs);
}

inline void multiplyPairedPanels(Rows<const float> rounded, Index rows, Index depth, const float* panels, Index columns,
                                 Rows<float> out) {
  const Index pairs = (depth + 1) / 2;
  Index column = 0;
  for (; column + 2 * kLanes <= columns; column += 2 * kLanes) {
    multiplyPairedPanel<2>(rounded, rows, pairs, panels + column * depth, {out.data + column, out.stride});
  }
  for (; column < columns; column += kLanes) {
    multiplyPairedPanel<1>(rounded, rows, pairs, panels + column * depth, {out.data + column, out.stride});
  }
}

#endif

inline void roundRows(const RowBlocks& dense, Index depth, Rows<float> out) {
  for (Index r = 0; r < dense.count(); ++r) {
#if defined(__AVX512F__)
    if (hasPairs()) {
      pairRow(dense.row(r), depth, out.row(r));
      continue;
    }
#endif
    roundNumbers(dense.row(r), depth, out.row(r));
  }
}

inline void roundPanels(float* panels, Index depth, Index columns) {
#if defined(__AVX512F__)
  if (hasPairs()) {
    Index column = 0;
    for (; column + 2 * kLanes <= columns; column += 2 * kLanes) pairPanel(panels + column * depth, depth, 2 * kLanes);
    for (; column < columns; column += kLanes) pairPanel(panels + column * depth, depth, kLanes);
    return;
  }
#endif
  roundNumbers(panels, depth * columns, panels);
}

inline void multiplyRounded(Rows<const float> rounded, Index rows, Index depth, const float* panels, Index columns,
                            Rows<float> out) {
#if defined(__AVX512F__)
  if (hasPairs()) return multiplyPairedPanels(rounded, rows, depth, panels, columns, out);
#endif
  multiplyPanels({rounded, rows}, depth, panels, columns, {nullptr, 0}, out);
}

}  // namespace snnjax::SNNJAX_ISA
