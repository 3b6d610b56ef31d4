// Dense products, for rows in which so many neurons are active that listing them would be slower.
#pragma once

#include "../kernels.hpp"
#include "simd.hpp"

namespace snnjax::SNNJAX_ISA {

#if defined(__AVX512F__)
inline constexpr int kTileRows = 8;  // 8 x 2 sums, 2 weights and a factor fit into 32 registers
#else
inline constexpr int kTileRows = 4;  // likewise into 16
#endif

// out[r] = start[r] + dense[r] @ weights for kRows rows and kVectors vectors of columns, with all sums in registers.
template <int kRows, int kVectors>
inline bool multiplyTile(Rows<const float> dense, Index depth, const float* weights, Index stride,
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
      const Floats factor = splat(dense.data[r * dense.stride + k]);
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

template <int kVectors>
inline bool multiplyColumns(Rows<const float> dense, Index rows, Index depth, Rows<const float> weights, Index column,
                            Rows<const float> start, Rows<float> out) {
  const Rows<const float> own_start{start.data == nullptr ? nullptr : start.data + column, start.stride};
  const auto startOf = [&](Index r) {
    return Rows<const float>{own_start.data == nullptr ? nullptr : own_start.row(r), own_start.stride};
  };
  bool finite = true;
  Index r = 0;
  for (; r + kTileRows <= rows; r += kTileRows) {
    finite &= multiplyTile<kTileRows, kVectors>({dense.row(r), dense.stride}, depth, weights.data + column,
                                                weights.stride, startOf(r), {out.row(r) + column, out.stride});
  }
  for (; r < rows; ++r) {
    finite &= multiplyTile<1, kVectors>({dense.row(r), dense.stride}, depth, weights.data + column, weights.stride,
                                        startOf(r), {out.row(r) + column, out.stride});
  }
  return finite;
}

inline bool multiplyRows(Rows<const float> dense, Index rows, Index depth, Rows<const float> weights, Index columns,
                         Rows<const float> start, Rows<float> out) {
  bool finite = true;
  Index column = 0;
  for (; column + 2 * kLanes <= columns; column += 2 * kLanes) {
    finite &= multiplyColumns<2>(dense, rows, depth, weights, column, start, out);
  }
  for (; column < columns; column += kLanes) {
    finite &= multiplyColumns<1>(dense, rows, depth, weights, column, start, out);
  }
  return finite;
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
