// Rows and columns exchanged, in square blocks of as many rows as a vector has lanes.
#pragma once

#include "../kernels.hpp"
#include "simd.hpp"

namespace snnjax::SNNJAX_ISA {

// Exchanges, in each pair of vectors kDistance apart, the lanes of the first one whose place has this bit with those of
// the second one that have not; then likewise for all smaller distances.
template <int kDistance>
inline void exchange(Floats* vectors) {
  constexpr auto first = [](int lane) { return (lane & kDistance) != 0 ? lane + kLanes - kDistance : lane; };
  constexpr auto second = [](int lane) { return (lane & kDistance) != 0 ? lane + kLanes : lane + kDistance; };
  SNNJAX_UNROLL
  for (int i = 0; i < kLanes; ++i) {
    if ((i & kDistance) != 0) continue;
    const Floats a = vectors[i], b = vectors[i + kDistance];
    vectors[i] = shuffled(a, b, first);
    vectors[i + kDistance] = shuffled(a, b, second);
  }
  if constexpr (kDistance > 1) exchange<kDistance / 2>(vectors);
}

inline void transpose(Rows<const float> from, Index rows, Index columns, Rows<float> to) {
  for (Index row = 0; row < rows; row += kLanes) {
    for (Index column = 0; column < columns; column += kLanes) {
      Floats vectors[kLanes];
      SNNJAX_UNROLL
      for (int i = 0; i < kLanes; ++i) {
        vectors[i] = row + i < rows ? load(from.row(row + i) + column) : Floats{};
      }
      exchange<kLanes / 2>(vectors);
      SNNJAX_UNROLL
      for (int i = 0; i < kLanes; ++i) {
        if (column + i < columns) store(to.row(column + i) + row, vectors[i]);
      }
    }
  }
}

}  // namespace snnjax::SNNJAX_ISA
