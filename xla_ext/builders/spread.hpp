// How single ops spread arrays over tiles: by blocks of columns or of rows.
#pragma once

#include <poplar/Graph.hpp>
#include <vector>

#include "tile_range.hpp"

namespace snnjax::builders {

// All tiles from tile 0 on, each with the fewest neighbouring columns that fill whole 64-bit words of `type`.
TileRange spreadColumns(unsigned columns, const poplar::Type& type, unsigned num_tiles);

// Neighbouring rows on one tile.
struct RowBlock {
  unsigned tile = 0;
  unsigned first = 0;
  unsigned last = 0;  // exclusive

  unsigned rows() const { return last - first; }
};

std::vector<RowBlock> spreadRows(unsigned rows, unsigned num_tiles);

// [rows, elements], each block on its tile.
poplar::Tensor addRows(poplar::Graph& graph, const poplar::Type& type, const std::vector<RowBlock>& blocks,
                       std::size_t elements, const char* name);

}  // namespace snnjax::builders
