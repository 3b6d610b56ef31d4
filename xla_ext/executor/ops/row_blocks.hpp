// The blocks of a table on the tiles, as the planner divides it for a gather or scatter.
#pragma once

#include <functional>
#include <poplar/Interval.hpp>
#include <poplar/Tensor.hpp>
#include <vector>

#include "executor/lowering.hpp"
#include "planner/row_plan.hpp"

namespace snnjax::executor::ops {

// Rows of the table, numbers of rows that are looked up, and columns, of all of them; on one tile.
struct RowBlock {
  poplar::Interval rows, lookups, columns;
  std::size_t row_part;
  std::size_t tile;
};

class RowBlocks {
 public:
  enum class Use { Gather, Scatter, ScatterInOrder };
  // Groups are neighbouring rows, with neighbouring numbers that refer to them.
  struct Sizes {
    std::size_t groups, rows, columns, lookups, element_bytes;
    std::size_t share = 1;  // most elements of the table on one tile
  };
  RowBlocks(Lowering& lowering, const Sizes& sizes, Use use);

  const planner::RowPlan& plan() const { return plan_; }
  std::size_t mostLookups() const;  // of a block
  // In tile order: blocks of the same numbers and columns are neighbours. None is empty.
  void forEach(const std::function<void(const RowBlock&)>& body) const;
  // Memory for sizeOf(block) elements on each block's tile, by tiles.
  std::vector<poplar::Tensor> makeOnTiles(const poplar::Type& type,
                                          const std::function<std::size_t(const RowBlock&)>& sizeOf) const;
  // Of tables {rows of the block, columns of the block} by tiles, one of each block: a whole table, flat, for each part
  // of the lookups.
  std::vector<poplar::Tensor> asTables(const std::vector<poplar::Tensor>& by_tile) const;

 private:
  RowBlock block(std::size_t tile) const;

  Lowering& lowering_;
  Sizes sizes_;
  std::size_t chunks_;     // of groups, each on tiles of its own
  planner::RowPlan plan_;  // of a chunk
};

}  // namespace snnjax::executor::ops
