// Dense products of numbers that are split into bfloat16 parts, with sums in float32.
//
// One part is the number rounded. Three hold a float32 in full, its 24 bits as three times 8: each part is what the
// parts before it leave, rounded. Of the nine products of the parts of two numbers the six largest make up their
// product to float32's own precision; the others are below its last bit (Henry, Tang and Heinecke 2019,
// arXiv:1904.06376).
//
// AVX-512 has an instruction for such products in its BF16 extension: it multiplies pairs of numbers and adds both
// products to one sum, which on AMD's processors (Zen 4 and newer) is twice the rate of float32; on Intel's it is half,
// but those have a matrix unit as well (tile_products.hpp). For both, numbers are stored in pairs, two in the place of
// one float32: of each 32 numbers of a row, or rows of a panel, those that are 16 apart, which takes the fewest
// instructions. Parts follow one another, each padded with zeros. Elsewhere numbers are only rounded, and multiplied as
// float32.
#pragma once

#include "products.hpp"

namespace snnjax::SNNJAX_ISA {

#if defined(__AVX512F__)

// Numbers of a part are padded to this many: those of a row of a tile of the matrix unit.
inline constexpr Index kPairedDepth = 32;
static_assert(kPairedDepth == 2 * kLanes);

inline bool hasPairs() {
  static const bool has = __builtin_cpu_supports("avx512bf16") && __builtin_cpu_is("amd");
  return has;
}

inline Index pairsOf(Index depth) { return (depth + kPairedDepth - 1) / kPairedDepth * kLanes; }
inline Index pairedLength(Index depth, Index parts) { return parts * pairsOf(depth); }

// The next part of numbers of which `left` is left. The last of three needs no rounding: it has no more than 8 bits.
// The others are rounded away from 0 in a tie; what is not finite may become anything, but the last part stays so.
inline Floats takePart(Floats* left, Index part, Index parts) {
  if (parts == 1) return roundToBfloat16(*left);
  if (part + 1 == parts) return *left;
  const auto nearest = (Floats)(((Unsigned)*left + 0x8000U) & 0xffff0000U);
  *left -= nearest;
  return nearest;
}

inline Floats pairOf(Floats first, Floats second) {
  return (Floats)((Ints)((Unsigned)first >> 16) | ((Ints)second & static_cast<std::int32_t>(0xffff0000)));
}

inline Floats loadUpTo(const float* from, Index left) {
  if (left >= kLanes) return load(from);
  return left <= 0 ? Floats{} : loadPart(from, left);
}

inline void pairRow(const float* from, const float* next, Index depth, Index parts, float* to) {
  for (Index k = 0; k < depth; k += kPairedDepth) {
    __builtin_prefetch(next + k);
    __builtin_prefetch(next + k + kLanes);
    Floats first = loadUpTo(from + k, depth - k), second = loadUpTo(from + k + kLanes, depth - k - kLanes);
    for (Index part = 0; part < parts; ++part) {
      const Floats of_first = takePart(&first, part, parts), of_second = takePart(&second, part, parts);
      store(to + part * pairsOf(depth) + k / 2, pairOf(of_first, of_second));
    }
  }
}

// Rows are too far apart for the hardware prefetcher: each is fetched while one before it is split.
inline void pairRows(const RowBlocks& dense, Index depth, Index parts, Rows<float> out) {
  constexpr Index kAhead = 4;
  const Index rows = dense.count();
  for (Index r = 0; r < rows; ++r) {
    const float* next = dense.row(r + kAhead < rows ? r + kAhead : rows - 1);
    parts == 1 ? pairRow(dense.row(r), next, depth, 1, out.row(r)) : pairRow(dense.row(r), next, depth, 3, out.row(r));
  }
}

// One panel of `width` columns.
inline void pairPanel(const float* panel, Index depth, Index width, Index parts, float* to) {
  const Index size = pairsOf(depth) * width;  // of a part
  for (Index pair = 0; pair < pairsOf(depth); ++pair) {
    const Index k = pair / kLanes * kPairedDepth + pair % kLanes;
    for (Index column = 0; column < width; column += kLanes) {
      Floats first{}, second{};
      if (k < depth) first = load(panel + k * width + column);
      if (k + kLanes < depth) second = load(panel + (k + kLanes) * width + column);
      for (Index part = 0; part < parts; ++part) {
        const Floats of_first = takePart(&first, part, parts), of_second = takePart(&second, part, parts);
        store(to + part * size + pair * width + column, pairOf(of_first, of_second));
      }
    }
  }
}

inline void pairPanels(const float* panels, Index depth, Index columns, Index parts, float* out) {
  for (Index column = 0; column < columns;) {
    const Index width = columns - column < 2 * kLanes ? kLanes : 2 * kLanes;
    pairPanel(panels + column * depth, depth, width, parts, out + column * pairedLength(depth, parts));
    column += width;
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
  const Index pairs = pairsOf(depth);
  Index column = 0;
  for (; column + 2 * kLanes <= columns; column += 2 * kLanes) {
    multiplyPairedPanel<2>(rounded, rows, pairs, panels + column * pairs, {out.data + column, out.stride});
  }
  for (; column < columns; column += kLanes) {
    multiplyPairedPanel<1>(rounded, rows, pairs, panels + column * pairs, {out.data + column, out.stride});
  }
}

#endif

inline void roundNumbers(const float* from, Index count, float* to) {
  Index i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, roundToBfloat16(load(from + i)));
  if (i < count) storePart(to + i, roundToBfloat16(loadPart(from + i, count - i)), count - i);
}

// Whether a product of rounded numbers is faster than one of float32.
inline bool roundingPays() {
#if defined(__AVX512F__)
  return hasPairs();
#else
  return false;
#endif
}

// Of one part, as these sets of instructions take no more.
inline Index splitLength(Index depth, [[maybe_unused]] Index parts) {
#if defined(__AVX512F__)
  if (hasPairs()) return pairedLength(depth, parts);
#endif
  return depth;
}

inline void splitRows(const RowBlocks& dense, Index depth, [[maybe_unused]] Index parts, Rows<float> out) {
#if defined(__AVX512F__)
  if (hasPairs()) return pairRows(dense, depth, parts, out);
#endif
  for (Index r = 0; r < dense.count(); ++r) roundNumbers(dense.row(r), depth, out.row(r));
}

inline void splitPanels(const float* panels, Index depth, Index columns, [[maybe_unused]] Index parts, float* out) {
#if defined(__AVX512F__)
  if (hasPairs()) return pairPanels(panels, depth, columns, parts, out);
#endif
  roundNumbers(panels, depth * columns, out);
}

inline bool multiplySplit(Rows<const float> split, Index rows, Index depth, [[maybe_unused]] Index parts,
                          const float* panels, Index columns, Rows<float> out) {
#if defined(__AVX512F__)
  if (hasPairs()) {
    multiplyPairedPanels(split, rows, depth, panels, columns, out);
    return true;
  }
#endif
  multiplyPanels({split, rows}, depth, panels, columns, {nullptr, 0}, out);
  return true;
}

}  // namespace snnjax::SNNJAX_ISA
