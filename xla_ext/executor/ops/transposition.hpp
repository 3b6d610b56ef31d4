// Operands of products that are transposed in a step of their own, because they travel to many tiles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <poplar/Tensor.hpp>
#include <vector>

#include "executor/ops/product_blocks.hpp"

namespace snnjax::executor::ops {

// How matrices {groups, rows, columns} are divided among the tiles to be transposed: their rows are cut as products use
// them, so that each column of a part is one message.
class Transposition {
 public:
  Transposition(std::size_t groups, const std::vector<poplar::Interval>& taken, std::size_t columns, std::size_t tiles);

  // body(tile, group, rows, columns)
  template <class Body>
  void forEach(Body&& body) const {
    std::size_t tile = 0;
    for (std::size_t group = 0; group < groups_; ++group) {
      for (std::size_t column = 0; column < columns_; column += width_) {
        const poplar::Interval columns(column, std::min(columns_, column + width_));
        for (const poplar::Interval& rows : rows_) body(tile++ % tiles_, group, rows, columns);
      }
    }
  }
  std::vector<std::size_t> counts() const;
  // Of parts in order, each {columns, rows}: {groups, columns, rows}.
  poplar::Tensor joined(const std::vector<poplar::Tensor>& made) const;

 private:
  std::size_t groups_, columns_, tiles_;
  std::size_t width_ = 1;  // columns of a part
  std::vector<poplar::Interval> rows_;
};

// How the operands of a product are transposed.
Transposition transpositionOfLhs(const ProductBlocks& blocks);
Transposition transpositionOfRhs(const ProductBlocks& blocks);

// {groups, rows, columns} transposed to {groups, columns, rows} in its own step, for operands that travel to many
// tiles.
poplar::Tensor transposed(Lowering& lowering, const Transposition& transposition, const poplar::Tensor& matrices);

}  // namespace snnjax::executor::ops
