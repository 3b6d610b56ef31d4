// Where the result of an elementwise operation goes.
#pragma once

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Tensor.hpp>
#include <poplar/Type.hpp>
#include <vector>

namespace popops {

// A tensor of the broadcast shape of `inputs`, on the tiles of the input of that shape that uses the most; spread
// evenly where there is none.
poplar::Tensor createOutputForElementWiseOp(poplar::Graph& graph, const std::vector<poplar::Tensor>& inputs,
                                            const poplar::Type& output_type, const poplar::DebugContext& debug = {});

}  // namespace popops
