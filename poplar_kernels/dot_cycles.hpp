// What Dot, TransposedDot and DotTransposed (dot.cpp) cost a worker, in issue slots, by the rules of issue_slots.hpp.
//
// One row times a block of 8 columns: for each of the `depth` numbers of the row a load and a copy into all lanes of a
// register, the branch: 3, and for each vector of the block (2 floats; 4 halves with sums in half) a product and a sum,
// the load of the next vector beside one of them: 2. Halves with float sums: two at a time, widened by one instruction
// more: 3. Around it addresses, choices and loop 14, and for each vector its old sum or zeros, and the store: 4.
// Narrower blocks go number by number, and where rows of b do not begin at whole vectors a number is one element.
// PopLibs counts 1 a vector where product and sum are one instruction (f32v2axpy; ipu.md 3.5), which C++ does not
// reach. The tiles' matrix units (AMP), 16 to 64 times as fast, cannot be reached from C++ of the public interface.
#pragma once

#include <cstdint>

namespace snnjax::cycles {

constexpr unsigned kDotColumns = 8;
constexpr std::uint64_t kDotPrologue = 35;  // fields, the worker's share with its first row and column: counted
constexpr std::uint64_t kDotBlock = 14;
constexpr std::uint64_t kDotSum = 4;

// A block of `count` columns of a matrix of `columns`.
constexpr std::uint64_t dotBlock(std::uint64_t count, std::uint64_t columns, std::uint64_t depth, bool half_operands,
                                 bool half_sums) {
  constexpr std::uint64_t kStep = 3;  // load, copy, branch
  const std::uint64_t widest = half_sums ? 4 : 2, width = columns % widest == 0 ? widest : 1;
  const std::uint64_t numbers = count / width, number = half_operands && !half_sums ? 3 : 2;
  const std::uint64_t passes = count == kDotColumns ? 1 : numbers, each = numbers / passes;
  return passes * (kDotBlock + each * kDotSum + depth * (kStep + each * number));
}

// With the rows of b along the depth: for each pair of numbers of the row of a load and the branch 2, for each of the 8
// columns address and load with the product and the sum in their bundles 2; halves are widened by 1 more each, so that
// the float instructions hold it up. A single column: two loads, product or sum, branch 4, widening 2. Rows of an odd
// depth go number by number. At the end of each column the sum of both lanes, the old one, and the store: 4.
constexpr std::uint64_t transposedBlock(std::uint64_t count, std::uint64_t depth, bool half_operands) {
  const std::uint64_t steps = depth % 2 == 0 ? depth / 2 : depth;
  if (count == kDotColumns) {
    const std::uint64_t step = half_operands ? 3 + 3 * kDotColumns : 2 + 2 * kDotColumns;
    return kDotBlock + kDotColumns * kDotSum + steps * step;
  }
  return count * (kDotBlock + kDotSum + steps * (half_operands ? 6 : 4));
}

}  // namespace snnjax::cycles
