// Loops whose body reads a counter stored on a tile.
#pragma once

#include <functional>
#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

namespace popops {

using CountedLoopBodyType = std::function<poplar::program::Program(const poplar::Tensor&)>;

// for (unsigned i = begin; i < end; i += step) body(i): the body gets the counter as a tensor {1} of UNSIGNED_INT.
poplar::program::Sequence countedLoop(poplar::Graph& graph, std::size_t begin, std::size_t end, std::size_t step,
                                      const CountedLoopBodyType& body, const poplar::DebugContext& debug = {});
poplar::program::Sequence countedLoop(poplar::Graph& graph, std::size_t count, const CountedLoopBodyType& body,
                                      const poplar::DebugContext& debug = {});

}  // namespace popops
