// What Dot, TransposedDot and DotTransposed (dot.cpp) cost a worker, in issue slots.
//
// One row times a block of 8 columns: for each of the `depth` numbers of the row a load and a copy into both halves of
// a register, the branch, and for each vector of the block (2 floats, 4 halves) a product and a sum, the load of the
// next vector beside one of them. Halves with float sums: two conversions and two sums of pairs for each product of 4.
// The block itself: addresses, its old sums or zeros, the stores: 30. Counted; the inner loop is that of an axpy, whose
// vectorised form PopLibs counts with 1 per 64-bit vector where product and sum are one instruction (ipu.md 3.5). The
// tiles' matrix units (AMP), 16 to 64 times as fast, cannot be reached from C++ of the public vertex interface.
#pragma once

#include <cstdint>

namespace snnjax::cycles {

constexpr unsigned kDotColumns = 8;
constexpr std::uint64_t kDotPrologue = 35;
constexpr std::uint64_t kDotBlock = 30;

// `blocks` blocks of a row and at most 8 columns.
constexpr std::uint64_t dot(std::uint64_t blocks, std::uint64_t depth, bool half_operands, bool half_sums) {
  constexpr std::uint64_t kNumber = 3;  // load, copy, branch
  const std::uint64_t vectors = half_operands ? kDotColumns / 4 : kDotColumns / 2;
  const std::uint64_t vector = half_operands && !half_sums ? 5 : 2;
  return kDotPrologue + blocks * (kDotBlock + depth * (kNumber + vectors * vector));
}

// With the rows of b along the depth: for each pair of numbers of the row of a load and the branch, for each of the 8
// columns a load beside the product, and the sum; halves are converted, two slots for the pair of each column and one
// for that of the row. At the end of each column the two halves of its sum, and the store: within the 30 of the block.
constexpr std::uint64_t dotTransposed(std::uint64_t blocks, std::uint64_t depth, bool half_operands) {
  const std::uint64_t pair = half_operands ? 3 + kDotColumns * 4 : 2 + kDotColumns * 2;
  return kDotPrologue + blocks * (kDotBlock + (depth + 1) / 2 * pair);
}

}  // namespace snnjax::cycles
