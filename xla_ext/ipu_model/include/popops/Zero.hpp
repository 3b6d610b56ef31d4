// Sets elements to zero, on the tiles they lie on.
#pragma once

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Interval.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <vector>

namespace popops {

void zero(poplar::Graph& graph, const poplar::Tensor& t, poplar::program::Sequence& prog,
          const poplar::DebugContext& debug = {});
// The given elements of the flattened tensor, on one tile.
void zero(poplar::Graph& graph, poplar::Tensor t, const std::vector<poplar::Interval>& tile_regions, unsigned tile,
          poplar::ComputeSet cs);
// The same with one list of regions for each tile.
void zero(poplar::Graph& graph, const poplar::Tensor& t, const std::vector<std::vector<poplar::Interval>>& mapping,
          poplar::ComputeSet cs);

}  // namespace popops
