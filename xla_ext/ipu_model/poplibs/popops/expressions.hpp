// Expressions on tensors: a tree is one program, which a vertex runs on each tile that holds elements of the result.
#pragma once

#include <optional>
#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <popops/Expr.hpp>
#include <vector>

namespace poplibs {

// Adds what evaluates the expression: into `out` where there is one, else into a new tensor of the operands' broadcast
// shape, on the tiles of the operand of that shape that uses most of them.
poplar::Tensor evaluate(poplar::Graph& graph, poplar::program::Sequence& prog, const popops::expr::Expr& expr,
                        const std::vector<poplar::Tensor>& tensors, const std::optional<poplar::Tensor>& out,
                        const poplar::DebugContext& debug);

}  // namespace poplibs
