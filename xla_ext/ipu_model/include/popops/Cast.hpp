// Values of a tensor in another type. Numbers that the new type cannot hold are rounded, truncated or saturated as by
// the tile's instructions.
#pragma once

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

namespace popops {

poplar::Tensor cast(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Type& type,
                    poplar::program::Sequence& prog, const poplar::DebugContext& debug = {});
poplar::Tensor cast(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Type& type,
                    const poplar::ComputeSet& cs, const poplar::DebugContext& debug = {});

// Into `dst`, whose type is the new one.
poplar::program::Program cast(poplar::Graph& graph, poplar::Tensor src, poplar::Tensor dst,
                              const poplar::DebugContext& debug = {});
void cast(poplar::Graph& graph, poplar::Tensor src, poplar::Tensor dst, const poplar::ComputeSet& cs);

}  // namespace popops
