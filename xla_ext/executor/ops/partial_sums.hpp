// Sums of a product's blocks that are computed away from the output, and their addition over the parts of the depth.
#pragma once

#include <cstddef>
#include <poplar/Tensor.hpp>
#include <vector>

#include "executor/ops/product_blocks.hpp"

namespace snnjax::executor::ops {

// How many sums each tile makes, if partial ones should be added up on all tiles rather than on those that hold the
// output: where one of these would take several times what it would otherwise. Else nothing.
std::vector<std::size_t> evenShares(const ProductPlan& plan, const std::vector<std::size_t>& cuts);

class PartialSums {
 public:
  PartialSums(Lowering& lowering, const ProductBlocks& blocks, const poplar::Type& type);

  // The sums of a block, flat, on its tile.
  const poplar::Tensor& of(const ProductBlock& block) const { return sums_[index(block)]; }
  // Adds their sum over the parts of the depth, each tile its own part of the output.
  void addUp(const poplar::Tensor& out) const;

 private:
  std::size_t index(const ProductBlock& block) const;
  std::vector<poplar::Tensor> byPart() const;
  poplar::Tensor inOrder(const poplar::Tensor& blocks, const Shape& shape) const;
  void addParts(const std::vector<poplar::Tensor>& parts, const poplar::Tensor& to,
                const std::vector<std::size_t>& cuts) const;

  Lowering& lowering_;
  const ProductBlocks& blocks_;
  poplar::Type type_;
  std::vector<poplar::Tensor> sums_;
};

}  // namespace snnjax::executor::ops
