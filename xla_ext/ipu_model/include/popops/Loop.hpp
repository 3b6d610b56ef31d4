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

// for (count = initial; count != limit; count += step) body: the limit is a scalar tensor, INT or UNSIGNED_INT, read
// when the program runs.
poplar::program::Sequence countedForLoop(poplar::Graph& graph, const poplar::Tensor& count, int initial_count,
                                         const poplar::Tensor& count_limit, int count_step,
                                         const poplar::program::Program& body, const poplar::DebugContext& debug = {});
poplar::program::Sequence countedForLoop(poplar::Graph& graph, int initial_count, const poplar::Tensor& count_limit,
                                         int count_step, const poplar::program::Program& body,
                                         const poplar::DebugContext& debug = {});

}  // namespace popops
