// How a dense product is divided among the tiles and in time: numbers alone, which the executor and the model's poplin
// turn into graphs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "planner/machine.hpp"

namespace snnjax::planner {

// [m, k] times [k, n]
struct ProductSizes {
  std::size_t m = 1, k = 1, n = 1;
  bool halves = false;                                  // operands of 16 bits; sums have 32
  bool lhs_transposed = false, rhs_transposed = false;  // its rows run along the depth, so it must be transposed
  // Stored row by row, not in blocks of this product: each row of a block is a message.
  bool lhs_in_rows = false, rhs_in_rows = false, out_in_rows = false;
};

// Each tile computes a block [m_block, n_block] of the sums over a part k_block of the depth. One of the three
// matrices, the main one, is stationary: tiles are numbered along its blocks, and the parts of the third size are
// neighbours. The others travel. Where that exceeds the tiles' memory, the output is stationary and the depth is
// processed in steps.
struct ProductPlan {
  enum class Main { Lhs, Rhs, Out };

  std::size_t m_block = 1, k_block = 1, n_block = 1;
  std::size_t m_parts = 1, k_parts = 1, n_parts = 1;
  std::size_t k_step = 1;  // of k_block, at once
  Main main = Main::Out;
  bool holds_lhs = false;      // the matrix unit holds blocks of the left operand, and rows of the right one stream
  std::size_t spacing = 1;     // tiles from one block of the main matrix to the next, at least the neighbours
  bool columns_first = false;  // blocks of the main matrix are numbered down its columns
  bool lhs_transposed = false, rhs_transposed = false;  // on its tile, each time a block is multiplied
  bool transposes_lhs = false, transposes_rhs = false;  // once, before it travels
  double cycles = 0;                                    // estimated
  std::size_t bytes = 0;                                // of a tile, that operands brought to it and partial sums take
  std::size_t code = 0;  // of a tile, for the messages: all steps and the way of the sums

  std::size_t parts() const { return m_parts * k_parts * n_parts; }
  std::size_t thirdParts() const { return main == Main::Lhs ? n_parts : main == Main::Rhs ? m_parts : k_parts; }
  // Tiles that work on one block of the main matrix, side by side. Partial sums of an output are computed further
  // apart, so that neighbours share an operand.
  std::size_t neighbours() const { return main == Main::Out ? 1 : thirdParts(); }
  std::size_t steps() const { return (k_block + k_step - 1) / k_step; }
  // From the first tile to one past the last.
  std::size_t tiles() const { return parts() / neighbours() * spacing; }
  // Of a group's blocks, counted from its first tile. `depth_first`: the rows of the main operand lie along the depth.
  std::size_t tile(std::size_t m, std::size_t k, std::size_t n, bool depth_first) const;
};

// The default stationary matrix of a product: the largest.
ProductPlan::Main largestMatrix(const ProductSizes& sizes);

// The blocks of the largest matrix, along its two sizes, if other products have already settled them.
struct SettledBlocks {
  std::size_t m = 0, k = 0, n = 0;  // 0: not of the matrix
};

// The division with the least estimated time among those that fit in memory; if none does, the one that takes least.
// Settled blocks are kept where memory allows.
ProductPlan planProduct(const ProductSizes& sizes, const Machine& machine, const SettledBlocks& settled = {});

}  // namespace snnjax::planner
