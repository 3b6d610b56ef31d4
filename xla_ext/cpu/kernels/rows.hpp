// Products with lists of spikes: whole rows of the weights are added, nothing is multiplied by zero.
#pragma once

#include "../kernels.hpp"
#include "simd.hpp"

namespace snnjax::SNNJAX_ISA {

// The sums of `kVectors` vectors of columns stay in registers over all ids of a row. Ids at even and at odd places are
// summed apart, which keeps two additions a vector in flight.
template <int kVectors, bool kWeighted>
inline void sumRow(const SpikeRow& spikes, const float* weights, Index stride, const float* start, float* out) {
  Floats even[kVectors], odd[kVectors];
  for (int i = 0; i < kVectors; ++i) {
    even[i] = start == nullptr ? Floats{} : load(start + i * kLanes);
    odd[i] = Floats{};
  }
  std::uint32_t k = 0;
  for (; k + 2 <= spikes.count; k += 2) {
    const float* first = weights + static_cast<Index>(spikes.ids[k]) * stride;
    const float* second = weights + static_cast<Index>(spikes.ids[k + 1]) * stride;
    for (int i = 0; i < kVectors; ++i) {
      if constexpr (kWeighted) {
        even[i] += spikes.values[k] * load(first + i * kLanes);
        odd[i] += spikes.values[k + 1] * load(second + i * kLanes);
      } else {
        even[i] += load(first + i * kLanes);
        odd[i] += load(second + i * kLanes);
      }
    }
  }
  if (k < spikes.count) {
    const float* last = weights + static_cast<Index>(spikes.ids[k]) * stride;
    const float value = kWeighted ? spikes.values[k] : 1.0F;
    for (int i = 0; i < kVectors; ++i) even[i] += value * load(last + i * kLanes);
  }
  for (int i = 0; i < kVectors; ++i) store(out + i * kLanes, even[i] + odd[i]);
}

template <int kVectors>
inline void sumColumns(const SpikeRow* spikes, Index rows, Rows<const float> weights, Index column,
                       Rows<const float> start, Rows<float> out) {
  for (Index r = 0; r < rows; ++r) {
    const float* own_start = start.data == nullptr ? nullptr : start.row(r) + column;
    float* own_out = out.row(r) + column;
    if (spikes[r].values == nullptr) {
      sumRow<kVectors, false>(spikes[r], weights.data + column, weights.stride, own_start, own_out);
    } else {
      sumRow<kVectors, true>(spikes[r], weights.data + column, weights.stride, own_start, own_out);
    }
  }
}

inline void sumRows(const SpikeRow* spikes, Index rows, Rows<const float> weights, Index columns,
                    Rows<const float> start, Rows<float> out) {
  Index column = 0;
  for (; column + 8 * kLanes <= columns; column += 8 * kLanes) {
    sumColumns<8>(spikes, rows, weights, column, start, out);
  }
  for (; column + 4 * kLanes <= columns; column += 4 * kLanes) {
    sumColumns<4>(spikes, rows, weights, column, start, out);
  }
  for (; column + 2 * kLanes <= columns; column += 2 * kLanes) {
    sumColumns<2>(spikes, rows, weights, column, start, out);
  }
  for (; column < columns; column += kLanes) sumColumns<1>(spikes, rows, weights, column, start, out);
}

template <int kVectors, bool kWeighted>
inline void addRow(const SpikeRow& spikes, float* weights, Index stride, const float* g) {
  Floats own[kVectors];
  for (int i = 0; i < kVectors; ++i) own[i] = load(g + i * kLanes);
  for (std::uint32_t k = 0; k < spikes.count; ++k) {
    float* row = weights + static_cast<Index>(spikes.ids[k]) * stride;
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

// The dot products of `kRows` rows with g. Each runs in four partial sums.
template <int kRows>
inline void dots(const std::uint32_t* ids, Rows<const float> weights, Index columns, const float* g, float* out) {
  const float* row[kRows];
  Floats sums[kRows][2];
  for (int k = 0; k < kRows; ++k) {
    row[k] = weights.row(static_cast<Index>(ids[k]));
    sums[k][0] = sums[k][1] = Floats{};
  }
  Index column = 0;
  for (; column + 2 * kLanes <= columns; column += 2 * kLanes) {
    const Floats first = load(g + column), second = load(g + column + kLanes);
    for (int k = 0; k < kRows; ++k) {
      sums[k][0] += first * load(row[k] + column);
      sums[k][1] += second * load(row[k] + column + kLanes);
    }
  }
  for (; column < columns; column += kLanes) {
    const Index left = columns - column < kLanes ? columns - column : kLanes;
    const Floats rest = loadPart(g + column, left);
    for (int k = 0; k < kRows; ++k) sums[k][0] += rest * loadPart(row[k] + column, left);
  }
  for (int k = 0; k < kRows; ++k) out[k] = sumOf(sums[k][0] + sums[k][1]);
}

inline void dotRows(const std::uint32_t* ids, Index count, Rows<const float> weights, Index columns, const float* g,
                    float* out) {
  Index k = 0;
  for (; k + 4 <= count; k += 4) dots<4>(ids + k, weights, columns, g, out + k);
  for (; k < count; ++k) dots<1>(ids + k, weights, columns, g, out + k);
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
    _mm512_storeu_si512(ids + count, _mm512_maskz_compress_epi32(static_cast<__mmask16>(bits),
                                                                 (__m512i)lanesOf(static_cast<std::int32_t>(first))));
    _mm512_storeu_ps(values + count, _mm512_maskz_compress_ps(static_cast<__mmask16>(bits), (__m512)x));
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

}  // namespace snnjax::SNNJAX_ISA
