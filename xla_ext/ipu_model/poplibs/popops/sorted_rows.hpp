// Rows that are sorted in place: each row is whole on one tile.
#pragma once

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <vector>

namespace poplibs {

// {rows, length}, rows spread over the tiles.
poplar::Tensor addRows(poplar::Graph& graph, const poplar::Type& type, std::size_t rows, std::size_t length,
                       const poplar::DebugContext& debug);

// Each row of `keys` in order, and of `values` along with them. Both come from addRows.
void sortRows(poplar::Graph& graph, const poplar::Tensor& keys, const poplar::Tensor& values, bool descending,
              poplar::program::Sequence& prog, const poplar::DebugContext& debug);

// Every row becomes 0, 1, 2, ...
void numberRows(poplar::Graph& graph, const poplar::Tensor& rows, poplar::program::Sequence& prog,
                const poplar::DebugContext& debug);

}  // namespace poplibs
