// The sums before and after the products of a convolution of 3 x 3 in blocks of 2 x 2 outputs (Winograd; Lavin and Gray
// 2015, arXiv:1509.09308): 16 products of each input with an output in place of 36.
#pragma once

#include "../kernels.hpp"
#include "simd.hpp"

namespace snnjax::SNNJAX_ISA {

// Four numbers along one axis, as the products read them.
inline void spreadFour(Floats a, Floats b, Floats c, Floats d, Floats* to, int step) {
  to[0] = a - c;
  to[step] = b + c;
  to[2 * step] = c - b;
  to[3 * step] = b - d;
}

inline void spreadBlock(const float* const* pixels, Index channels, Rows<float> out) {
  for (Index c = 0; c < channels; c += kLanes) {
    Floats rows[16], all[16];
    SNNJAX_UNROLL
    for (int y = 0; y < 4; ++y) {
      const float* const* own = pixels + 4 * y;
      spreadFour(load(own[0] + c), load(own[1] + c), load(own[2] + c), load(own[3] + c), rows + 4 * y, 1);
    }
    SNNJAX_UNROLL
    for (int x = 0; x < 4; ++x) spreadFour(rows[x], rows[4 + x], rows[8 + x], rows[12 + x], all + x, 4);
    SNNJAX_UNROLL
    for (int i = 0; i < 16; ++i) store(out.row(i) + c, all[i]);
  }
}

inline bool collectBlock(Rows<const float> products, Index channels, float* const* pixels) {
  Floats probe{};  // as in `multiplyTile`
  for (Index c = 0; c < channels; c += kLanes) {
    Floats rows[8];
    SNNJAX_UNROLL
    for (int x = 0; x < 4; ++x) {
      const Floats b = load(products.row(4 + x) + c), d = load(products.row(8 + x) + c);
      rows[x] = load(products.row(x) + c) + b + d;
      rows[4 + x] = b - d - load(products.row(12 + x) + c);
    }
    SNNJAX_UNROLL
    for (int y = 0; y < 2; ++y) {
      const Floats* own = rows + 4 * y;
      const Floats left = own[0] + own[1] + own[2], right = own[1] - own[2] - own[3];
      probe += left * 0.0F + right * 0.0F;
      store(pixels[2 * y] + c, left);
      store(pixels[2 * y + 1] + c, right);
    }
  }
  return bitsOf(notEqual(probe, Floats{})) == 0;
}

}  // namespace snnjax::SNNJAX_ISA
