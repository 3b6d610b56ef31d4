// How rows of a table are gathered or updated by index: plain numbers, which the executor turns into graphs.
#pragma once

#include <cstddef>

#include "planner/machine.hpp"

namespace snnjax::planner {

// `lookups` numbers of rows of a table [rows, columns].
struct RowSizes {
  std::size_t rows = 1, columns = 1, lookups = 1;
  std::size_t element_bytes = 4;
  std::size_t share = 1;  // most elements of the table that lie on one tile, where results are joined
};

// Each tile has a block [row_block, column_block] of the table and goes through a part of the numbers. Where rows are
// divided, the gathered results are combined; where numbers are divided, each part updates its own table, and these are
// combined.
struct RowPlan {
  std::size_t row_block = 1, column_block = 1, lookup_block = 1;
  std::size_t row_parts = 1, column_parts = 1, lookup_parts = 1;
  double cycles = 0;      // estimated
  std::size_t bytes = 0;  // of a tile

  std::size_t parts() const { return row_parts * column_parts * lookup_parts; }
};

// The division with the least estimated time among those that fit in memory; if none does, the one that takes least.
RowPlan planGather(const RowSizes& sizes, const Machine& machine);
// `in_order`: no two tiles may change one element, so that the last number of a row wins.
RowPlan planScatter(const RowSizes& sizes, const Machine& machine, bool in_order);

}  // namespace snnjax::planner
