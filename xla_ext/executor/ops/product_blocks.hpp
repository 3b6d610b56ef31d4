// The blocks of a product on their tiles, and the partial sums that they leave where the depth is divided.
#pragma once

#include <poplar/Tensor.hpp>
#include <vector>

#include "executor/lowering.hpp"

namespace snnjax::executor::ops {

// Block [m, n] of group g, over part k of the depth.
struct ProductBlock {
  std::size_t group, m, k, n;
  std::size_t tile;
};

class ProductBlocks {
 public:
  ProductBlocks(const Product& product, const ProductPlan& plan, std::size_t tiles)
      : product_(product), plan_(plan), tiles_(tiles) {}

  template <class Body>
  void forEach(Body&& body) const {
    const bool turned = plan_.main == ProductPlan::Main::Lhs ? product_.lhsDepthFirst() : product_.rhsDepthFirst();
    for (std::size_t g = 0; g < product_.groups; ++g) {
      for (std::size_t m = 0; m < plan_.m_parts; ++m) {
        for (std::size_t k = 0; k < plan_.k_parts; ++k) {
          for (std::size_t n = 0; n < plan_.n_parts; ++n) {
            body(ProductBlock{g, m, k, n, firstTile(g) + plan_.tile(m, k, n, turned)});
          }
        }
      }
    }
  }

  poplar::Interval rows(std::size_t m) const { return part(m, plan_.m_block, product_.m); }
  poplar::Interval depth(std::size_t k) const { return part(k, plan_.k_block, product_.k); }
  poplar::Interval columns(std::size_t n) const { return part(n, plan_.n_block, product_.n); }
  // Whether an array of the product's output has these very blocks, in their order.
  bool areThoseOf(const Blocks& layout) const;

  const Product& product() const { return product_; }
  const ProductPlan& plan() const { return plan_; }

 private:
  // Groups lie side by side where there are tiles for all, else several share one.
  std::size_t firstTile(std::size_t group) const {
    const bool side_by_side = product_.groups * plan_.tiles() <= tiles_;
    return side_by_side ? group * plan_.tiles() : group * tiles_ / product_.groups;
  }
  static poplar::Interval part(std::size_t part, std::size_t block, std::size_t size) {
    return {part * block, std::min(size, (part + 1) * block)};
  }

  const Product& product_;
  const ProductPlan& plan_;
  std::size_t tiles_;
};

class PartialSums {
 public:
  PartialSums(Lowering& lowering, const ProductBlocks& blocks, const poplar::Type& type);

  // The sums of a block, flat, on its tile.
  const poplar::Tensor& of(const ProductBlock& block) const { return sums_[index(block)]; }
  // Adds their sum over the parts of the depth, each tile its own part of the output.
  void addUp(const poplar::Tensor& out) const;

 private:
  std::size_t index(const ProductBlock& block) const;
  std::vector<poplar::Tensor> inOrder(const Shape& shape) const;

  Lowering& lowering_;
  const ProductBlocks& blocks_;
  poplar::Type type_;
  std::vector<poplar::Tensor> sums_;
};

}  // namespace snnjax::executor::ops
