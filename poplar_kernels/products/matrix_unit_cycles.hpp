// What the vendor's vertices of dense products cost a tile. They use its matrix unit (AMP), whose instructions public
// C++ cannot reach: matrix_unit.cpp says in C++ what they compute, and this file gives their published cost. Nothing
// here was measured by this project.
//
// The unit multiplies rows with a held block of weights: 16 columns by 16 of the depth in half, by 8 in float, 64 or 16
// multiply-adds a cycle. For each block the supervisor loads the weights, 16 bytes a cycle, and starts the workers,
// which share the rows. Figures: the estimates of ConvPartial1x1 and ReduceAdd in PopLibs 3.4 (MIT), for float sums. On
// a Bow [N, 16] times [16, 16] in half was measured to take 4.000 N + 331 cycles (graphcore-research/tessellate-ipu,
// notebook "IPU Peak Flops"); Only kReturn is taken from that fit.
#pragma once

#include <cstdint>

namespace snnjax::cycles {

constexpr std::uint64_t kUnitColumns = 16;  // of a held block
constexpr std::uint64_t unitDepth(bool half) { return half ? 16 : 8; }

// Issue slots of a worker for one held block and `rows` rows; `first` is the block that sums start with.
constexpr std::uint64_t unitRows(std::uint64_t rows, bool half, bool first) {
  const std::uint64_t zeroed = !half && first && rows > 0 ? 2 + 8 * rows : 0;  // float sums are cleared before
  const std::uint64_t known = 7;  // less, because registers are kept from one block of halves to the next
  if (rows < 3) {
    constexpr std::uint64_t kHalf[] = {22, 33, 42}, kFloat[] = {24, 47, 46};
    return half ? kHalf[rows] - (first ? 1 : 0) - known : kFloat[rows] + zeroed;
  }
  return half ? 38 - (first ? 1 : 0) - known + 4 * (rows - 3) : 46 + zeroed + 8 * (rows - 3);
}

struct UnitBlocks {
  std::uint64_t depth, columns;  // blocks of weights along each
};

// At least one: it clears the sums.
constexpr UnitBlocks unitBlocks(std::uint64_t depth, std::uint64_t columns, bool half) {
  return {depth == 0 ? 1 : (depth + unitDepth(half) - 1) / unitDepth(half),
          (columns + kUnitColumns - 1) / kUnitColumns};
}

// Issue slots of a worker with `rows` of the rows, over all blocks.
constexpr std::uint64_t unitWorker(std::uint64_t rows, UnitBlocks blocks, bool half) {
  return blocks.columns * ((blocks.depth - 1) * unitRows(rows, half, false) + unitRows(rows, half, true));
}

// Tile cycles of the supervisor, while no worker runs: the loads of weights, loops, the return.
constexpr std::uint64_t unitSupervisor(UnitBlocks blocks, bool half) {
  constexpr std::uint64_t kCall = 50, kLoad = 32, kReturn = 6, kWorkers = 6;
  const std::uint64_t known = half ? kWorkers * (7 + 3 * (blocks.depth - 1)) : 0;
  const std::uint64_t groups = 12 + (half ? 1 : 0), further = 16 - (half ? 1 : 0);
  return kCall + kReturn + known + groups + (blocks.depth - 1) * (further + blocks.columns * (19 + 6 + kLoad)) + 11 +
         blocks.columns * (19 - (half ? 1 : 0) + 7 + kLoad);
}

// A transposed operand is first reordered on the tile: element by element in float, a load and a store each; halves in
// 4 by 4 squares (PopLibs' Transpose2D).
constexpr std::uint64_t transposed(std::uint64_t elements, bool half) { return half ? elements : 2 * elements; }

// The total in tile cycles, without launch and synchronisation.
constexpr std::uint64_t matrixProduct(std::uint64_t rows, std::uint64_t depth, std::uint64_t columns, bool half) {
  const UnitBlocks blocks = unitBlocks(depth, columns, half);
  return unitSupervisor(blocks, half) + 6 * unitWorker((rows + 5) / 6, blocks, half);
}

// Sums of partial results, a worker with so many of the outputs, by 16 bytes of a part: three slots for them and each
// part. (PopLibs' estimate for floats; halves are taken to go as many bytes at a time.) A single part is only cast, two
// numbers a slot (PopLibs' estimate of a cast).
constexpr std::uint64_t sumPartials(std::uint64_t vectors, std::uint64_t parts) {
  constexpr std::uint64_t kPrologue = 32, kOutputs = 7, kCastPrologue = 26;
  return parts == 1 ? kCastPrologue + 2 * vectors : kPrologue + vectors * (kOutputs + 3 * parts);
}

}  // namespace snnjax::cycles
