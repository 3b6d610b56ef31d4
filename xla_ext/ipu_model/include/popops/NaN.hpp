// Whether any element is NaN, or not finite.
#pragma once

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

namespace popops {

// Scalars of type BOOL.
poplar::Tensor hasNaN(poplar::Graph& graph, const poplar::Tensor& src, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debug = {});
poplar::Tensor hasNaNOrInf(poplar::Graph& graph, const poplar::Tensor& src, poplar::program::Sequence& prog,
                           const poplar::DebugContext& debug = {});

}  // namespace popops
