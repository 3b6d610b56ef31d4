// Tensors as tables [rows, columns] of which rows are taken: rows along the sliced dimension, columns all the others.
#pragma once

#include <poplar/Graph.hpp>
#include <poplar/Tensor.hpp>
#include <vector>

#include "poplibs/popops/per_tile.hpp"

namespace poplibs {

// t, with dimension `dim` as rows; and back into this shape.
poplar::Tensor asTable(const poplar::Tensor& t, std::size_t dim);
poplar::Tensor fromTable(const poplar::Tensor& table, const std::vector<std::size_t>& shape, std::size_t dim);

// The columns on each tile, judged by the first row.
std::vector<TilePart> columnsByTile(const poplar::Graph& graph, const poplar::Tensor& table);

// A new table with these columns on each tile, where they form one contiguous [rows, columns of the tile].
poplar::Tensor addTable(poplar::Graph& graph, const poplar::Type& type, std::size_t rows,
                        const std::vector<TilePart>& columns, const poplar::DebugContext& debug);

// Those columns of a table, as one row of elements.
poplar::Tensor columnsOf(const poplar::Tensor& table, const TilePart& columns);

}  // namespace poplibs
