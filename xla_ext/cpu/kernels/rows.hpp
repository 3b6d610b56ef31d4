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

// The sums of `kVectors` vectors of columns stay in registers over all ids of a row. Where there are registers for
// both, ids at even and at odd places are summed apart, which keeps two additions a vector in flight.
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
inline void sumColumns(const SpikeRow* spikes, Index rows, Rows<const T> weights, Index column, Rows<const float> start,
                       Rows<float> out, Index left) {
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
  for (; k + 2 <= count; k += 2) dots<2, 4>(ids + k, weights, columns, g, out + k);
  if (k < count) dots<1, 8>(ids + k, weights, columns, g, out + k);
}

// The ids of the set bits of a word, `first` being that of the lowest; up to 64 + kListSlack elements are written.
inline std::uint32_t listWord(std::uint64_t word, std::uint32_t first, std::uint32_t* ids) {
  const auto count = static_cast<std::uint32_t>(__builtin_popcountll(word));
#if defined(__AVX512VBMI2__)
  // Without a branch on the bits, which are as good as random: a mispredicted one costs more than all of this.
  using Bytes = std::uint8_t __attribute__((vector_size(64)));
  constexpr Bytes kPlaces{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                          22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
                          44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
  const auto places = (Bytes)_mm512_maskz_compress_epi8(word, (__m512i)kPlaces);
  const auto put = [&](std::uint32_t* to, __m128i sixteen) {
    const auto wide = (Ints)_mm512_maskz_cvtepu8_epi32(0xffff, sixteen) + static_cast<std::int32_t>(first);
    __builtin_memcpy(to, &wide, sizeof wide);
  };
  __m128i part[4];
  __builtin_memcpy(part, &places, sizeof places);
  put(ids, part[0]);
  if (count > 16) {
    SNNJAX_UNROLL
    for (int i = 1; i < 4; ++i) put(ids + 16 * i, part[i]);
  }
#else
  constexpr std::uint32_t kFew = 4;  // so many are written without a branch
  for (std::uint32_t k = 0; k < kFew; ++k, word &= word - 1) {
    ids[k] = first + (word == 0 ? 0 : static_cast<std::uint32_t>(__builtin_ctzll(word)));
  }
  for (std::uint32_t k = kFew; word != 0; ++k, word &= word - 1) {
    ids[k] = first + static_cast<std::uint32_t>(__builtin_ctzll(word));
  }
#endif
  return count;
}

// Which of up to 64 numbers are not 0, a bit each; `others` gets those that are not 1 either.
inline std::uint64_t nonZero(const float* from, Index count, std::uint64_t* others) {
  std::uint64_t bits = 0;
  *others = 0;
  for (Index i = 0; i < count; i += kLanes) {
    const Index left = count - i;
    const Floats x = left >= kLanes ? load(from + i) : loadPart(from + i, left);
    bits |= static_cast<std::uint64_t>(bitsOf(notEqual(x, Floats{}))) << i;
    *others |= static_cast<std::uint64_t>(bitsOf(notEqual(x, splat(1.0F)))) << i;
  }
  *others &= bits;
  return bits;
}

inline std::uint32_t listNonZero(const float* row, Index width, std::uint32_t* ids, float* values, bool* all_ones) {
  std::uint32_t count = 0;
  std::uint64_t others = 0;
  for (Index first = 0; first < width; first += 64) {
    const Index left = width - first;
    std::uint64_t own_others;
    const std::uint64_t bits =
        left >= 64 ? nonZero(row + first, 64, &own_others) : nonZero(row + first, left, &own_others);
    others |= own_others;
    count += listWord(bits, static_cast<std::uint32_t>(first), ids + count);
  }
  *all_ones = others == 0;
  for (std::uint32_t k = 0; others != 0 && k < count; ++k) values[k] = row[ids[k]];
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
    count += listWord(bits[word], static_cast<std::uint32_t>(word * 64), ids + count);
  }
  return count;
}

inline void expandBits(const std::uint64_t* bits, Index width, float* out) {
  for (Index first = 0; first < width; first += kLanes) {
    const auto own = static_cast<std::uint32_t>(bits[first / 64] >> (first % 64));
    const Floats x = select(maskOf(own), splat(1.0F), Floats{});
    const Index left = width - first;
    left >= kLanes ? store(out + first, x) : storePart(out + first, x, left);
  }
}

}  // namespace snnjax::SNNJAX_ISA
