// Copies to arrays that are too large to stay in the caches until they are read.
#pragma once

#include "../kernels.hpp"
#include "simd.hpp"

namespace snnjax::SNNJAX_ISA {

inline void streamRows(Rows<const float> from, Index rows, Index columns, const float* scale, Rows<float> to) {
  for (Index r = 0; r < rows; ++r) {
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(to.row(r)) % sizeof(Floats) == 0;
    for (Index column = 0; column < columns; column += kLanes) {
      const Index left = columns - column;
      const bool is_whole = left >= kLanes;
      const auto read = [&](const float* row) { return is_whole ? load(row + column) : loadPart(row + column, left); };
      const Floats x = scale == nullptr ? read(from.row(r)) : read(scale) * read(from.row(r));
      float* out = to.row(r) + column;
      if (!is_whole) {
        storePart(out, x, left);
      } else {
        is_aligned ? stream(out, x) : store(out, x);
      }
    }
  }
  finishStream();
}

}  // namespace snnjax::SNNJAX_ISA
