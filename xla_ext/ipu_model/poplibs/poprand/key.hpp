// Where the key of a draw comes from: a seed of the caller, or the graph's own state.
#pragma once

#include <cstdint>
#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

namespace poplibs {

// Two words that stay unchanged until the next draw. Without a seed `prog` moves the graph's state on first, so that no
// two draws see the same.
poplar::Tensor drawKey(poplar::Graph& graph, const poplar::Tensor* seed, std::uint32_t modifier,
                       poplar::program::Sequence& prog, const poplar::DebugContext& debug);

}  // namespace poplibs
