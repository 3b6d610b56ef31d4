// A product of arrays as `groups` products of matrices, and how it is divided among the tiles.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "executor/layouts/layout.hpp"
#include "executor/plan/plan.hpp"

namespace snnjax::executor {

// out[g, m, n] = sum over k of lhs[g, m, k] * rhs[g, k, n], whatever the order of dimensions they lie in.
struct Product {
  Shape lhs, rhs, out;
  std::vector<unsigned> lhs_batching, rhs_batching, lhs_contracting, rhs_contracting;
  std::size_t groups = 1, m = 1, k = 1, n = 1;

  Product(const Plan& plan, const Instruction& instruction);
  // The dimensions of an operand that stay, in order.
  std::vector<unsigned> lhsFree() const;
  std::vector<unsigned> rhsFree() const;
  // Whether an operand lies with the depth before the dimensions that stay.
  bool lhsDepthFirst() const;
  bool rhsDepthFirst() const;

  friend auto operator<=>(const Product&, const Product&) = default;
};

// Each tile makes a block [m_block, n_block] of the sums over a part k_block of the depth. Tiles are numbered along the
// blocks of the largest matrix, which so lies where it is used; the parts of the third size are neighbours.
struct ProductPlan {
  enum class Main { Lhs, Rhs, Out };

  std::size_t m_block = 1, k_block = 1, n_block = 1;
  std::size_t m_parts = 1, k_parts = 1, n_parts = 1;
  Main main = Main::Out;
  std::size_t spacing = 1;  // tiles from one block of the largest matrix to the next, at least the third parts

  std::size_t parts() const { return m_parts * k_parts * n_parts; }
  std::size_t thirdParts() const { return main == Main::Lhs ? n_parts : main == Main::Rhs ? m_parts : k_parts; }
  // From the first tile to behind the last.
  std::size_t tiles() const { return parts() / thirdParts() * spacing; }
  // Of a group's blocks, counted from its first tile.
  std::size_t tile(std::size_t m, std::size_t k, std::size_t n, bool depth_first) const;
};

// Blocks of matrix sizes that are settled already, by size: products that share a size divide it alike.
using KnownBlocks = std::map<std::size_t, std::size_t>;

ProductPlan planProduct(const Product& product, std::size_t tiles, const KnownBlocks& known);

}  // namespace snnjax::executor
