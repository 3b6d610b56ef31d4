// Products with spike lists, which add rows of the weights and never multiply by zero, and dense products, for rows
// with so many active neurons that listing them would be slower.
#pragma once

#include "../kernels.hpp"
#include "simd.hpp"

namespace snnjax::SNNJAX_ISA {

#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int kPairedVectors = 8;  // two sums each fit into 32 registers
#else
inline constexpr int kPairedVectors = 4;  // likewise into 16
#endif

// Whole vectors of columns, or one cut off after `left` columns.
template <bool kWhole, typename T>
inline Floats loadColumns(const T* from, Index left) {
  if constexpr (kWhole) {
    return load(from);
  } else {
    return loadPart(from, left);
  }
}

// Sums of vectors of columns in registers, whose weights are of type T. Unless they are whole, the last vector is cut
// off after `left` columns. Of bfloat16, two vectors hold the even and the odd columns of two: a shift and a mask widen
// them, where widening one after another takes four instructions.
template <int kVectors, bool kWhole, typename T>
struct ColumnSums {
  static constexpr bool kIsSplit = sizeof(T) == sizeof(std::uint16_t) && kWhole && kVectors % 2 == 0;

  static bool isWhole(int vector) { return kWhole || vector + 1 < kVectors; }
  template <typename From>
  static Floats loadVector(const From* from, int vector, Index left) {
    return isWhole(vector) ? load(from + vector * kLanes) : loadPart(from + vector * kLanes, left);
  }

  // From nullptr: 0.
  void start(const float* from, Index left) {
    SNNJAX_UNROLL
    for (int i = 0; i < kVectors; ++i) sums[i] = from == nullptr ? Floats{} : loadVector(from, i, left);
    if constexpr (!kIsSplit) return;
    SNNJAX_UNROLL
    for (int i = 0; i < kVectors; i += 2) {
      const Floats first = sums[i], second = sums[i + 1];
      sums[i] = evenLanes(first, second);
      sums[i + 1] = oddLanes(first, second);
    }
  }

  // Adds the weights of one id, times their value.
  template <bool kWeighted>
  void add(const SpikeRow& spikes, std::uint32_t k, const T* weights, Index stride, Index left) {
    const T* from = weights + static_cast<Index>(spikes.ids[k]) * stride;
    const Floats value = kWeighted ? splat(spikes.values[k]) : splat(1.0F);
    SNNJAX_UNROLL
    for (int i = 0; i < kVectors; i += kIsSplit ? 2 : 1) {
      if constexpr (kIsSplit) {
        const Ints both = loadPairs(from + i * kLanes);
        const auto even = (Floats)(both << 16), odd = (Floats)(both & static_cast<std::int32_t>(0xffff0000));
        sums[i] += kWeighted ? value * even : even;
        sums[i + 1] += kWeighted ? value * odd : odd;
      } else {
        const Floats own = loadVector(from, i, left);
        sums[i] += kWeighted ? value * own : own;
      }
    }
  }

  void add(const ColumnSums& more) {
    SNNJAX_UNROLL
    for (int i = 0; i < kVectors; ++i) sums[i] += more.sums[i];
  }

  void finish(float* out, Index left) const {
    SNNJAX_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      Floats own = sums[i];
      if constexpr (kIsSplit) own = i % 2 == 0 ? firstPairs(own, sums[i + 1]) : secondPairs(sums[i - 1], own);
      isWhole(i) ? store(out + i * kLanes, own) : storePart(out + i * kLanes, own, left);
    }
  }

  Floats sums[kVectors];
};

// The sums of `kVectors` vectors of columns stay in registers over all ids of a row. If there are enough registers, ids
// at even and odd places are summed separately, which keeps two additions per vector in flight.
template <int kVectors, bool kWeighted, bool kWhole, typename T>
inline void sumRow(const SpikeRow& spikes, const T* weights, Index stride, const float* start, float* out, Index left) {
  ColumnSums<kVectors, kWhole, T> even, odd;
  even.start(start, left);
  odd.start(nullptr, left);
  std::uint32_t k = 0;
  for (; kVectors <= kPairedVectors && k + 2 <= spikes.count; k += 2) {
    even.template add<kWeighted>(spikes, k, weights, stride, left);
    odd.template add<kWeighted>(spikes, k + 1, weights, stride, left);
  }
  for (; k < spikes.count; ++k) even.template add<kWeighted>(spikes, k, weights, stride, left);
  even.add(odd);
  even.finish(out, left);
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

// As many columns of all rows as fill groups of `kVectors` vectors, of which the last may be cut off.
template <int kVectors, typename T>
inline Index sumGroups(const SpikeRow* spikes, Index rows, Rows<const T> weights, Index column, Index columns,
                       Rows<const float> start, Rows<float> out) {
  constexpr Index kGroup = kVectors * kLanes;
  for (; column + kGroup <= columns; column += kGroup) {
    sumColumns<kVectors, true>(spikes, rows, weights, column, start, out, 0);
  }
  const Index left = columns - column - (kGroup - kLanes);
  if (left <= 0) return column;
  sumColumns<kVectors, false>(spikes, rows, weights, column, start, out, left);
  return columns;
}

// Groups of vectors are the same whether the last vector is cut off or padded, and so are the bits of each sum.
template <typename T>
inline void sumRows(const SpikeRow* spikes, Index rows, Rows<const T> weights, Index columns, Rows<const float> start,
                    Rows<float> out) {
  Index column = 0;
  if (kPairedVectors == 8) column = sumGroups<16>(spikes, rows, weights, column, columns, start, out);
  column = sumGroups<8>(spikes, rows, weights, column, columns, start, out);
  column = sumGroups<4>(spikes, rows, weights, column, columns, start, out);
  column = sumGroups<2>(spikes, rows, weights, column, columns, start, out);
  sumGroups<1>(spikes, rows, weights, column, columns, start, out);
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

#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int kTileRows = 8;  // 8 x 2 sums, 2 weights and a factor fit into 32 registers
#elif defined(__AVX2__)
inline constexpr int kTileRows = 6;  // likewise into 16
#else
inline constexpr int kTileRows = 4;
#endif

// out[r] = start[r] + dense[r] @ weights for kRows rows and kVectors vectors of columns, with all sums in registers.
template <int kRows, int kVectors>
inline bool multiplyTile(const float* const* dense, Index depth, const float* weights, Index stride,
                         Rows<const float> start, Rows<float> out) {
  Floats sums[kRows][kVectors];
  SNNJAX_UNROLL
  for (int r = 0; r < kRows; ++r) {
    SNNJAX_UNROLL
    for (int i = 0; i < kVectors; ++i) sums[r][i] = start.data == nullptr ? Floats{} : load(start.row(r) + i * kLanes);
  }
  for (Index k = 0; k < depth; ++k) {
    Floats row[kVectors];
    SNNJAX_UNROLL
    for (int i = 0; i < kVectors; ++i) row[i] = load(weights + k * stride + i * kLanes);
    SNNJAX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Floats factor = splat(dense[r][k]);
      SNNJAX_UNROLL
      for (int i = 0; i < kVectors; ++i) sums[r][i] += factor * row[i];
    }
  }
  Floats probe{};  // x * 0 is 0 for a finite x, and NaN otherwise
  SNNJAX_UNROLL
  for (int r = 0; r < kRows; ++r) {
    SNNJAX_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      probe += sums[r][i] * 0.0F;
      store(out.row(r) + i * kLanes, sums[r][i]);
    }
  }
  return bitsOf(notEqual(probe, Floats{})) == 0;
}

// The same for the last rows of a product, fewer than a tile, at once.
template <int kRows, int kVectors>
inline bool multiplyRest(const float* const* dense, Index rows, Index depth, const float* weights, Index stride,
                         Rows<const float> start, Rows<float> out) {
  if constexpr (kRows == 0) {
    return true;
  } else {
    if (rows == kRows) return multiplyTile<kRows, kVectors>(dense, depth, weights, stride, start, out);
    return multiplyRest<kRows - 1, kVectors>(dense, rows, depth, weights, stride, start, out);
  }
}

// Of numbers [first, first + depth) of the rows and of `kVectors` vectors of columns, whose weights begin at `weights`,
// `stride` from row to row.
template <int kVectors>
inline bool multiplyColumns(const RowBlocks& dense, Index first, Index depth, const float* weights, Index stride,
                            Rows<const float> start, Rows<float> out) {
  bool finite = true;
  for (Index r = 0; r < dense.count(); r += kTileRows) {
    const Index rows = dense.count() - r < kTileRows ? dense.count() - r : kTileRows;
    const float* own[kTileRows];
    for (Index i = 0; i < rows; ++i) own[i] = dense.row(r + i) + first;
    const Rows<const float> own_start{start.data == nullptr ? nullptr : start.row(r), start.stride};
    const Rows<float> own_out{out.row(r), out.stride};
    finite &= multiplyRest<kTileRows, kVectors>(own, rows, depth, weights, stride, own_start, own_out);
  }
  return finite;
}

inline bool multiplyRows(Rows<const float> dense, Index rows, Index depth, Rows<const float> weights, Index columns,
                         Rows<const float> start, Rows<float> out) {
  const RowBlocks block{dense, rows};
  const auto from = [](auto of, Index column) {
    return decltype(of){of.data == nullptr ? nullptr : of.data + column, of.stride};
  };
  bool finite = true;
  Index column = 0;
  for (; column + 2 * kLanes <= columns; column += 2 * kLanes) {
    finite &= multiplyColumns<2>(block, 0, depth, weights.data + column, weights.stride, from(start, column),
                                 from(out, column));
  }
  for (; column < columns; column += kLanes) {
    finite &= multiplyColumns<1>(block, 0, depth, weights.data + column, weights.stride, from(start, column),
                                 from(out, column));
  }
  return finite;
}

// One panel: as many of its rows at a time as stay in the first-level cache while all rows of the product pass by.
template <int kVectors>
inline void multiplyPanel(const RowBlocks& dense, Index depth, const float* panel, Rows<const float> start,
                          Rows<float> out) {
  constexpr Index kDepth = 16384 / (kVectors * static_cast<Index>(sizeof(Floats)));
  multiplyColumns<kVectors>(dense, 0, depth < kDepth ? depth : kDepth, panel, kVectors * kLanes, start, out);
  for (Index k = kDepth; k < depth; k += kDepth) {
    const Index left = depth - k < kDepth ? depth - k : kDepth;
    multiplyColumns<kVectors>(dense, k, left, panel + k * kVectors * kLanes, kVectors * kLanes, {out.data, out.stride},
                              out);
  }
}

inline void multiplyPanels(const RowBlocks& dense, Index depth, const float* panels, Index columns,
                           Rows<const float> start, Rows<float> out) {
  Index column = 0;
  const auto startOf = [&] {
    return Rows<const float>{start.data == nullptr ? nullptr : start.data + column, start.stride};
  };
  for (; column + 2 * kLanes <= columns; column += 2 * kLanes) {
    multiplyPanel<2>(dense, depth, panels + column * depth, startOf(), {out.data + column, out.stride});
  }
  for (; column < columns; column += kLanes) {
    multiplyPanel<1>(dense, depth, panels + column * depth, startOf(), {out.data + column, out.stride});
  }
}

// weights[k] += sum_r dense[r][k] * g[r] for kInputs rows of the weights.
template <int kInputs, int kVectors>
inline void addTile(Rows<const float> dense, Index rows, float* weights, Index stride, Rows<const float> g) {
  Floats sums[kInputs][kVectors];
  SNNJAX_UNROLL
  for (int k = 0; k < kInputs; ++k) {
    SNNJAX_UNROLL
    for (int i = 0; i < kVectors; ++i) sums[k][i] = load(weights + k * stride + i * kLanes);
  }
  for (Index r = 0; r < rows; ++r) {
    Floats own[kVectors];
    SNNJAX_UNROLL
    for (int i = 0; i < kVectors; ++i) own[i] = load(g.row(r) + i * kLanes);
    SNNJAX_UNROLL
    for (int k = 0; k < kInputs; ++k) {
      const Floats factor = splat(dense.row(r)[k]);
      SNNJAX_UNROLL
      for (int i = 0; i < kVectors; ++i) sums[k][i] += factor * own[i];
    }
  }
  SNNJAX_UNROLL
  for (int k = 0; k < kInputs; ++k) {
    SNNJAX_UNROLL
    for (int i = 0; i < kVectors; ++i) store(weights + k * stride + i * kLanes, sums[k][i]);
  }
}

template <int kVectors>
inline void addInputs(Rows<const float> dense, Index rows, Index depth, Rows<float> weights, Index column,
                      Rows<const float> g) {
  const Rows<const float> own_g{g.data + column, g.stride};
  Index k = 0;
  for (; k + kTileRows <= depth; k += kTileRows) {
    addTile<kTileRows, kVectors>({dense.data + k, dense.stride}, rows, weights.row(k) + column, weights.stride, own_g);
  }
  for (; k < depth; ++k) {
    addTile<1, kVectors>({dense.data + k, dense.stride}, rows, weights.row(k) + column, weights.stride, own_g);
  }
}

inline void addProducts(Rows<const float> dense, Index rows, Index depth, Rows<float> weights, Index columns,
                        Rows<const float> g) {
  Index column = 0;
  for (; column + 2 * kLanes <= columns; column += 2 * kLanes) {
    addInputs<2>(dense, rows, depth, weights, column, g);
  }
  for (; column < columns; column += kLanes) addInputs<1>(dense, rows, depth, weights, column, g);
}

}  // namespace snnjax::SNNJAX_ISA
