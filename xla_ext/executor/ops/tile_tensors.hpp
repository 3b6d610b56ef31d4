// Arrays taken apart by the tiles on which they lie.
#pragma once

#include <poplar/Tensor.hpp>
#include <vector>

#include "executor/lowering.hpp"

namespace snnjax::executor::ops {

// Elements on each tile, flat; of rows of equal size, one after the other. Not valid where a tile has none.
using TileTensors = std::vector<poplar::Tensor>;

// How many elements each tile has, of each of `rows` rows.
std::vector<std::size_t> countsOf(const TileTensors& parts, std::size_t rows = 1);
// All elements, tile by tile.
poplar::Tensor all(const TileTensors& parts);
// Memory for `counts[t]` elements on tile t, for this operation alone.
TileTensors makeOnTiles(Lowering& lowering, const poplar::Type& type, const std::vector<std::size_t>& counts);

// Arrays of one shape, one after the other on each tile of their layout.
TileTensors onTiles(const Lowering& lowering, const std::vector<poplar::Tensor>& arrays);
// A tile's part as rows of equal size, filled up with elements of its own.
TileTensors asRows(const TileTensors& parts, std::size_t rows);
// Rows of which the first elements are a tile's part; what fills them up goes nowhere.
TileTensors intoRows(Lowering& lowering, const TileTensors& parts, const TileTensors& rows);

}  // namespace snnjax::executor::ops
