// Products with lists of spikes: whole rows of the weights are added, nothing is multiplied by zero.
#pragma once

#include "../kernels.hpp"
#include "simd.hpp"

namespace snnjax::SNNJAX_ISA {

#if defined(__AVX512F__)
inline constexpr int kPairedVectors = 8;  // two sums each fit into 32 registers
#else
inline constexpr int kPairedVectors = 4;  // likewise into 16
#endif

// Whole vectors of columns, or one that is cut off behind `left` columns.
template <bool kWhole, typename T>
inline Floats loadColumns(const T* from, Index left) {
  if constexpr (kWhole) {
    return load(from);
  } else {
    return loadPart(from, left);
  }
}

// The sums of `kVectors` vectors of columns stay in registers over all ids of a row. Where there are registers for both,
// ids at even and at odd places are summed apart, which keeps two additions a vector in flight.
template <int kVectors, bool kWeighted, bool kWhole, typename T>
inline void sumRow(const SpikeRow& spikes, const T* weights, Index stride, const float* start, float* out, Index left) {
  Floats even[kVectors], odd[kVectors];
  SNNJAX_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    even[i] = start == nullptr ? Floats{} : loadColumns<kWhole>(start + i * kLanes, left);
    odd[i] = Floats{};
  }
  std::uint32_t k = 0;
  for (; kVectors <= kPairedVectors && k + 2 <= spikes.count; k += 2) {
    const T* first = weights + static_cast<Index>(spikes.ids[k]) * stride;
    const T* second = weights + static_cast<Index>(spikes.ids[k + 1]) * stride;
    SNNJAX_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      if constexpr (kWeighted) {
        even[i] += spikes.values[k] * loadColumns<kWhole>(first + i * kLanes, left);
        odd[i] += spikes.values[k + 1] * loadColumns<kWhole>(second + i * kLanes, left);
      } else {
        even[i] += loadColumns<kWhole>(first + i * kLanes, left);
        odd[i] += loadColumns<kWhole>(second + i * kLanes, left);
      }
    }
  }
  for (; k < spikes.count; ++k) {
    const T* last = weights + static_cast<Index>(spikes.ids[k]) * stride;
    const float value = kWeighted ? spikes.values[k] : 1.0F;
    SNNJAX_UNROLL
    for (int i = 0; i < kVectors; ++i) even[i] += value * loadColumns<kWhole>(last + i * kLanes, left);
  }
  SNNJAX_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    kWhole ? store(out + i * kLanes, even[i] + odd[i]) : storePart(out, even[i] + odd[i], left);
  }
}

template <int kVectors, bool kWhole, typename T>
inline void sumColumns(const SpikeRow* spikes, Index rows, Rows<const T> weights, Index column,
                       Rows<const float> start, Rows<float> out, Index left) {
  for (Index r = 0; r < rows; ++r) {
    const float* own_start = start.data == nullptr ? nullptr : start.row(r) + column;
    float* own_out = out.row(r) + column;
    if (spikes[r].values == nullptr) {
      sumRow<kVectors, false, kWhole>(spikes[r], weights.data + column, weights.stride, own_start, own_out, left);
    } else {
      sumRow<kVectors, true, kWhole>(spikes[r], weights.data + column, weights.stride, own_start, own_out, left);
    }
  }
}

template <typename T>
inline void sumRows(const SpikeRow* spikes, Index rows, Rows<const T> weights, Index columns, Rows<const float> start,
                    Rows<float> out) {
  Index column = 0;
  for (; kPairedVectors == 8 && column + 16 * kLanes <= columns; column += 16 * kLanes) {
    sumColumns<16, true>(spikes, rows, weights, column, start, out, 0);
  }
  for (; column + 8 * kLanes <= columns; column += 8 * kLanes) {
    sumColumns<8, true>(spikes, rows, weights, column, start, out, 0);
  }
  for (; column + 4 * kLanes <= columns; column += 4 * kLanes) {
    sumColumns<4, true>(spikes, rows, weights, column, start, out, 0);
  }
  for (; column + 2 * kLanes <= columns; column += 2 * kLanes) {
    sumColumns<2, true>(spikes, rows, weights, column, start, out, 0);
  }
  for (; column + kLanes <= columns; column += kLanes) {
    sumColumns<1, true>(spikes, rows, weights, column, start, out, 0);
  }
  if (column < columns) sumColumns<1, false>(spikes, rows, weights, column, start, out, columns - column);
}

template <int kVectors, bool kWeighted>
inline void addRow(const SpikeRow& spikes, float* weights, Index stride, const float* g) {
  Floats own[kVectors];
  SNNJAX_UNROLL
  for (int i = 0; i < kVectors; ++i) own[i] = load(g + i * kLanes);
  for (std::uint32_t k = 0; k < spikes.count; ++k) {
    float* row = weights + static_cast<Index>(spikes.ids[k]) * stride;
    SNNJAX_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      if constexpr (kWeighted) {
        store(row + i * kLanes, load(row + i * kLanes) + spikes.values[k] * own[i]);
      } else {
        store(row + i * kLanes, load(row + i * kLanes) + own[i]);
      }
    }
  }
}

template <int kVectors>
inline void addColumns(const SpikeRow* spikes, Index rows, Rows<float> weights, Index column, Rows<const float> g) {
  for (Index r = 0; r < rows; ++r) {
    const float* own_g = g.row(r) + column;
    if (spikes[r].values == nullptr) {
      addRow<kVectors, false>(spikes[r], weights.data + column, weights.stride, own_g);
    } else {
      addRow<kVectors, true>(spikes[r], weights.data + column, weights.stride, own_g);
    }
  }
}

inline void addRows(const SpikeRow* spikes, Index rows, Rows<float> weights, Index columns, Rows<const float> g) {
  Index column = 0;
  for (; column + 8 * kLanes <= columns; column += 8 * kLanes) addColumns<8>(spikes, rows, weights, column, g);
  for (; column + 4 * kLanes <= columns; column += 4 * kLanes) addColumns<4>(spikes, rows, weights, column, g);
  for (; column < columns; column += kLanes) addColumns<1>(spikes, rows, weights, column, g);
}

// The dot products of `kRows` rows with g, in `kSums` partial sums each: about eight additions are in flight.
template <int kRows, int kSums>
inline void dots(const std::uint32_t* ids, Rows<const float> weights, Index columns, const float* g, float* out) {
  const float* row[kRows];
  Floats sums[kRows][kSums];
  SNNJAX_UNROLL
  for (int k = 0; k < kRows; ++k) {
    row[k] = weights.row(static_cast<Index>(ids[k]));
    SNNJAX_UNROLL
    for (int i = 0; i < kSums; ++i) sums[k][i] = Floats{};
  }
  Index column = 0;
  for (; column + kSums * kLanes <= columns; column += kSums * kLanes) {
    SNNJAX_UNROLL
    for (int i = 0; i < kSums; ++i) {
      const Floats own = load(g + column + i * kLanes);
      SNNJAX_UNROLL
      for (int k = 0; k < kRows; ++k) sums[k][i] += own * load(row[k] + column + i * kLanes);
    }
  }
  for (; column < columns; column += kLanes) {
    const Index left = columns - column < kLanes ? columns - column : kLanes;
    const Floats rest = loadPart(g + column, left);
    SNNJAX_UNROLL
    for (int k = 0; k < kRows; ++k) sums[k][0] += rest * loadPart(row[k] + column, left);
  }
  SNNJAX_UNROLL
  for (int k = 0; k < kRows; ++k) {
    SNNJAX_UNROLL
    for (int i = kSums / 2; i > 0; i /= 2) {
      SNNJAX_UNROLL
      for (int j = 0; j < i; ++j) sums[k][j] += sums[k][j + i];
    }
    out[k] = sumOf(sums[k][0]);
  }
}

inline void dotRows(const std::uint32_t* ids, Index count, Rows<const float> weights, Index columns, const float* g,
                    float* out) {
  Index k = 0;
  for (; k + 4 <= count; k += 4) dots<4, 2>(ids + k, weights, columns, g, out + k);
  for (; k < count; ++k) dots<1, 8>(ids + k, weights, columns, g, out + k);
}

inline std::uint32_t listNonZero(const float* row, Index width, std::uint32_t* ids, float* values, bool* all_ones) {
  std::uint32_t count = 0;
  bool ones = true;
  for (Index first = 0; first < width; first += kLanes) {
    const Index left = width - first;
    const Floats x = left >= kLanes ? load(row + first) : loadPart(row + first, left);
    std::uint32_t bits = bitsOf(notEqual(x, Floats{}));
    if (bits == 0) continue;
    ones = ones && (bitsOf(notEqual(x, splat(1.0F))) & bits) == 0;
#if defined(__AVX512F__)
    const auto entries = static_cast<__mmask16>(bits);
    const auto lanes = (__m512i)lanesOf(static_cast<std::int32_t>(first));
    _mm512_storeu_si512(ids + count, _mm512_maskz_compress_epi32(entries, lanes));
    _mm512_storeu_ps(values + count, _mm512_maskz_compress_ps(entries, (__m512)x));
    count += static_cast<std::uint32_t>(__builtin_popcount(bits));
#else
    for (; bits != 0; bits &= bits - 1) {
      const int lane = __builtin_ctz(bits);
      ids[count] = static_cast<std::uint32_t>(first + lane);
      values[count++] = x[lane];
    }
#endif
  }
  *all_ones = ones;
  return count;
}

// Which of 64 bytes are not 0, a bit each.
inline std::uint64_t nonZeroBytes(const std::uint8_t* from) {
#if defined(__AVX512BW__)
  const __m512i bytes = _mm512_loadu_si512(from);
  return _mm512_test_epi8_mask(bytes, bytes);
#else
  std::uint64_t bits = 0;
  for (int eight = 0; eight < 64; eight += 8) {
    std::uint64_t word;
    __builtin_memcpy(&word, from + eight, sizeof word);
    if (word == 0) continue;
    for (int i = 0; i < 8; ++i) bits |= static_cast<std::uint64_t>(from[eight + i] != 0) << (eight + i);
  }
  return bits;
#endif
}

inline std::uint32_t listNonZeroBytes(const std::uint8_t* row, Index width, std::uint32_t* ids, float* values,
                                      bool* all_ones) {
  std::uint32_t count = 0, others = 0;
  const auto list = [&](Index first, std::uint64_t bits) {
    for (; bits != 0; bits &= bits - 1) {
      const Index id = first + __builtin_ctzll(bits);
      ids[count] = static_cast<std::uint32_t>(id);
      others |= row[id] ^ 1U;
      values[count++] = static_cast<float>(row[id]);
    }
  };
  Index first = 0;
  for (; first + 64 <= width; first += 64) list(first, nonZeroBytes(row + first));
  std::uint64_t rest = 0;
  for (Index i = first; i < width; ++i) rest |= static_cast<std::uint64_t>(row[i] != 0) << (i - first);
  list(first, rest);
  *all_ones = others == 0;
  return count;
}

inline std::uint32_t listBits(const std::uint64_t* bits, Index width, std::uint32_t* ids) {
  std::uint32_t count = 0;
  for (Index word = 0; word < (width + 63) / 64; ++word) {
    std::uint64_t rest = bits[word];
    const auto first = static_cast<std::uint32_t>(word * 64);
#if defined(__AVX512F__)
    constexpr int kFew = 6;  // bits that are found faster one by one
    if (__builtin_popcountll(rest) > kFew) {
      for (std::uint32_t part = 0; part < 64; part += 16, rest >>= 16) {
        const auto sixteen = static_cast<__mmask16>(rest);
        const auto ids_here = (__m512i)lanesOf(static_cast<std::int32_t>(first + part));
        _mm512_storeu_si512(ids + count, _mm512_maskz_compress_epi32(sixteen, ids_here));
        count += static_cast<std::uint32_t>(__builtin_popcount(sixteen));
      }
      continue;
    }
#endif
    for (; rest != 0; rest &= rest - 1) ids[count++] = first + static_cast<std::uint32_t>(__builtin_ctzll(rest));
  }
  return count;
}

}  // namespace snnjax::SNNJAX_ISA
