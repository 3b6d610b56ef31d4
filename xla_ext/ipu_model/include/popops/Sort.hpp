// Sorting along one dimension, ascending. Each row is sorted on one tile, and the sort is stable.
#pragma once

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

namespace popops {

poplar::Tensor sort(poplar::Graph& graph, const poplar::Tensor& t, unsigned dim, poplar::program::Sequence& prog,
                    const poplar::DebugContext& debug = {});
void sortInPlace(poplar::Graph& graph, const poplar::Tensor& t, unsigned dim, poplar::program::Sequence& prog,
                 const poplar::DebugContext& debug = {});

// The values in the order of their keys.
poplar::Tensor sortKeyValue(poplar::Graph& graph, const poplar::Tensor& k, const poplar::Tensor& v, unsigned dim,
                            poplar::program::Sequence& prog, const poplar::DebugContext& debug = {});
void sortKeyValueInPlace(poplar::Graph& graph, const poplar::Tensor& k, const poplar::Tensor& v, unsigned dim,
                         poplar::program::Sequence& prog, const poplar::DebugContext& debug = {});

}  // namespace popops
