// One Boolean from many, for instance to decide over a branch or a loop.
#pragma once

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

namespace popops {

// A scalar of type BOOL: whether all elements of `a` (BOOL) are true.
poplar::Tensor allTrue(poplar::Graph& graph, poplar::Tensor a, poplar::program::Sequence& prog,
                       const poplar::DebugContext& debug = {});

}  // namespace popops
