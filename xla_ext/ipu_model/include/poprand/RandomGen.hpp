// Random tensors. With a seed {2} of UNSIGNED_INT the numbers are a function of seed, modifier and place alone. Without
// one they come from a state of the graph that every draw moves on.
#pragma once

#include <cstdint>
#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

namespace poprand {

// A new tensor with the shape and the tile mapping of `reference`; float, half or int. Real numbers lie in
// [min_value, max_value), integers in [min_value, max_value].
poplar::Tensor uniform(poplar::Graph& graph, const poplar::Tensor* master_seed, std::uint32_t seed_modifier,
                       const poplar::Tensor& reference, const poplar::Type& out_type, double min_value,
                       double max_value, poplar::program::Sequence& prog, const poplar::DebugContext& debug = {});

}  // namespace poprand
