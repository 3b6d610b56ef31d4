// The blocks of a product of matrices, as the planner divides it among the tiles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <poplar/Interval.hpp>
#include <vector>

#include "executor/operations.hpp"

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
    const bool depth_first = plan_.main == ProductPlan::Main::Lhs ? product_.lhsDepthFirst() : product_.rhsDepthFirst();
    for (std::size_t g = 0; g < product_.groups; ++g) {
      for (std::size_t m = 0; m < plan_.m_parts; ++m) {
        for (std::size_t k = 0; k < plan_.k_parts; ++k) {
          for (std::size_t n = 0; n < plan_.n_parts; ++n) {
            body(ProductBlock{g, m, k, n, firstTile(g) + plan_.tile(m, k, n, depth_first)});
          }
        }
      }
    }
  }

  poplar::Interval rows(std::size_t m) const { return part(m, plan_.m_block, product_.m); }
  poplar::Interval depth(std::size_t k) const { return part(k, plan_.k_block, product_.k); }
  // The range of a part of the depth that one step multiplies; empty if none is left.
  poplar::Interval depth(std::size_t k, std::size_t step) const {
    const poplar::Interval all = depth(k);
    const std::size_t begin = std::min(all.end(), all.begin() + step * plan_.k_step);
    return {begin, std::min(all.end(), begin + plan_.k_step)};
  }
  poplar::Interval columns(std::size_t n) const { return part(n, plan_.n_block, product_.n); }
  std::vector<poplar::Interval> allRows() const {
    return all(plan_.m_parts, [this](std::size_t m) { return rows(m); });
  }
  std::vector<poplar::Interval> allColumns() const {
    return all(plan_.n_parts, [this](std::size_t n) { return columns(n); });
  }
  // What is multiplied at once, all along the depth.
  std::vector<poplar::Interval> depthSteps() const {
    const std::size_t steps = plan_.steps();
    return all(plan_.k_parts * steps, [=, this](std::size_t i) { return depth(i / steps, i % steps); });
  }
  std::size_t elements(const ProductBlock& block) const { return rows(block.m).size() * columns(block.n).size(); }
  // Whether an array of the product's output has exactly these blocks, in their order.
  bool areThoseOf(const Blocks& layout) const;
  // Of the sums of all blocks, how many elements each tile makes.
  std::vector<std::size_t> counts() const;

  const Product& product() const { return product_; }
  const ProductPlan& plan() const { return plan_; }
  std::size_t tiles() const { return tiles_; }

 private:
  // Groups are placed side by side if there are enough tiles, else several share one.
  std::size_t firstTile(std::size_t group) const {
    const bool side_by_side = product_.groups * plan_.tiles() <= tiles_;
    return side_by_side ? group * plan_.tiles() : group * tiles_ / product_.groups;
  }
  template <class PartOf>
  static std::vector<poplar::Interval> all(std::size_t count, PartOf&& part_of) {
    std::vector<poplar::Interval> parts;
    for (std::size_t i = 0; i < count; ++i) {
      if (part_of(i).size() > 0) parts.push_back(part_of(i));
    }
    return parts;
  }
  static poplar::Interval part(std::size_t part, std::size_t block, std::size_t size) {
    return {part * block, std::min(size, (part + 1) * block)};
  }

  const Product& product_;
  const ProductPlan& plan_;
  std::size_t tiles_;
};

}  // namespace snnjax::executor::ops
