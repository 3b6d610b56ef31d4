// Products of spike lists with weights of 8 bits: rows of whole numbers, with one scale a column.
//
// Where all values are 1, rows are summed as whole numbers of 16 bits, twice as many to a vector as float32. These sums
// are exact, and so are those of whole numbers in float32 below 2^24.
#pragma once

#include "products.hpp"

namespace snnjax::SNNJAX_ISA {

using Int8s = std::int8_t __attribute__((vector_size(2 * kLanes)));
using Int16s = std::int16_t __attribute__((vector_size(4 * kLanes)));
using HalfInt16s = std::int16_t __attribute__((vector_size(2 * kLanes)));

// So many rows of -128 to 127 add up to no more than 16 bits hold.
inline constexpr std::uint32_t kRowsOfInt16 = 256;

#if defined(__AVX2__)
inline constexpr int kInt16Vectors = 8;
#else
inline constexpr int kInt16Vectors = 4;
#endif

// GCC 12 widens part by part where it is left to do it.
inline Int16s loadInt16s(const std::int8_t* from) {
#if defined(__AVX512F__)
  return (Int16s)_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
#elif defined(__AVX2__)
  return (Int16s)_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#elif defined(__ARM_NEON)
  return (Int16s)vmovl_s8(vld1_s8(from));
#else
  Int8s x;
  __builtin_memcpy(&x, from, sizeof x);
  return __builtin_convertvector(x, Int16s);
#endif
}

inline Floats toFloats(HalfInt16s x) {
#if defined(__AVX512F__)
  const auto ints = (Ints)_mm512_maskz_cvtepi16_epi32(kAllLanes, (__m256i)x);
#elif defined(__AVX2__)
  const auto ints = (Ints)_mm256_cvtepi16_epi32((__m128i)x);
#else
  const auto ints = __builtin_convertvector(x, Ints);
#endif
  return __builtin_convertvector(ints, Floats);
}

// out = start + scale * sum, of whole vectors of columns or one cut off after `left`.
template <bool kWhole>
inline void finishSum(Floats sum, const float* scale, const float* start, float* out, Index left) {
  const Floats own = loadColumns<kWhole>(scale, left);
  const Floats total = start == nullptr ? own * sum : fused(loadColumns<kWhole>(start, left), own, sum);
  kWhole ? store(out, total) : storePart(out, total, left);
}

// Twice `kVectors` vectors of columns, of spikes that are all 1.
template <int kVectors>
inline void sumWholeNumbers(const SpikeRow& spikes, const std::int8_t* weights, Index stride, const float* scale,
                            const float* start, float* out) {
  Floats totals[2 * kVectors]{};
  for (std::uint32_t k = 0; k < spikes.count;) {
    const std::uint32_t end = spikes.count - k < kRowsOfInt16 ? spikes.count : k + kRowsOfInt16;
    Int16s sums[kVectors]{};
    for (; k < end; ++k) {
      const std::int8_t* row = weights + static_cast<Index>(spikes.ids[k]) * stride;
      SNNJAX_UNROLL
      for (int i = 0; i < kVectors; ++i) sums[i] += loadInt16s(row + 2 * i * kLanes);
    }
    HalfInt16s halves[2 * kVectors];
    __builtin_memcpy(halves, sums, sizeof sums);
    SNNJAX_UNROLL
    for (int i = 0; i < 2 * kVectors; ++i) totals[i] += toFloats(halves[i]);
  }
  SNNJAX_UNROLL
  for (int i = 0; i < 2 * kVectors; ++i) {
    finishSum<true>(totals[i], scale + i * kLanes, start == nullptr ? nullptr : start + i * kLanes, out + i * kLanes,
                    kLanes);
  }
}

// `kVectors` vectors of columns in float32, also of spikes with values; whole ones, or one cut off after `left`.
template <int kVectors, bool kWhole>
inline void sumAsFloats(const SpikeRow& spikes, const std::int8_t* weights, Index stride, const float* scale,
                        const float* start, float* out, Index left) {
  Floats sums[kVectors]{};
  for (std::uint32_t k = 0; k < spikes.count; ++k) {
    const std::int8_t* row = weights + static_cast<Index>(spikes.ids[k]) * stride;
    const float value = spikes.values == nullptr ? 1.0F : spikes.values[k];
    SNNJAX_UNROLL
    for (int i = 0; i < kVectors; ++i) sums[i] += value * loadColumns<kWhole>(row + i * kLanes, left);
  }
  SNNJAX_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    finishSum<kWhole>(sums[i], scale + i * kLanes, start == nullptr ? nullptr : start + i * kLanes, out + i * kLanes,
                      left);
  }
}

// As many columns of a row as fill groups of `kVectors` vectors of 16 bits.
template <int kVectors>
inline Index sumGroups(const SpikeRow& spikes, Rows<const std::int8_t> weights, Index column, Index columns,
                       const float* scale, const float* start, float* out) {
  constexpr Index kGroup = 2 * kVectors * kLanes;
  for (; column + kGroup <= columns; column += kGroup) {
    sumWholeNumbers<kVectors>(spikes, weights.data + column, weights.stride, scale + column,
                              start == nullptr ? nullptr : start + column, out + column);
  }
  return column;
}

inline void sumRowsInt8(const SpikeRow* spikes, Index rows, Rows<const std::int8_t> weights, Index columns,
                        const float* scale, Rows<const float> start, Rows<float> out) {
  for (Index r = 0; r < rows; ++r) {
    const float* own_start = start.data == nullptr ? nullptr : start.row(r);
    float* to = out.row(r);
    Index c = 0;
    if (spikes[r].values == nullptr) {
      c = sumGroups<kInt16Vectors>(spikes[r], weights, c, columns, scale, own_start, to);
      c = sumGroups<4>(spikes[r], weights, c, columns, scale, own_start, to);
      c = sumGroups<2>(spikes[r], weights, c, columns, scale, own_start, to);
      c = sumGroups<1>(spikes[r], weights, c, columns, scale, own_start, to);
    }
    const auto from = [&] { return own_start == nullptr ? nullptr : own_start + c; };
    for (; c + 8 * kLanes <= columns; c += 8 * kLanes) {
      sumAsFloats<8, true>(spikes[r], weights.data + c, weights.stride, scale + c, from(), to + c, kLanes);
    }
    for (; c + kLanes <= columns; c += kLanes) {
      sumAsFloats<1, true>(spikes[r], weights.data + c, weights.stride, scale + c, from(), to + c, kLanes);
    }
    if (c < columns) {
      sumAsFloats<1, false>(spikes[r], weights.data + c, weights.stride, scale + c, from(), to + c, columns - c);
    }
  }
}

}  // namespace snnjax::SNNJAX_ISA
