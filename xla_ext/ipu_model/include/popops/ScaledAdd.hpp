// a += scale * b in place, with one pass over the data.
#pragma once

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

namespace popops {

// a += scale_b * b
void scaledAddTo(poplar::Graph& graph, poplar::Tensor a, poplar::Tensor b, float scale_b,
                 poplar::program::Sequence& prog, const poplar::DebugContext& debug = {},
                 const poplar::OptionFlags& options = {});
void scaledAddTo(poplar::Graph& graph, poplar::Tensor a, poplar::Tensor b, poplar::Tensor scale_b,
                 poplar::program::Sequence& prog, const poplar::DebugContext& debug = {},
                 const poplar::OptionFlags& options = {});

}  // namespace popops
