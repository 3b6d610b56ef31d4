// Expressions as programs of elementwise operations (xla_ext/elementwise).
#pragma once

#include <memory>
#include <poplar/Tensor.hpp>
#include <poplar/Type.hpp>
#include <popops/Expr.hpp>
#include <vector>

#include "elementwise/program.hpp"

namespace poplibs {

// Operations in terms of others; null for those that programs have themselves.
std::unique_ptr<popops::expr::Expr> rewritten(const popops::expr::Expr& expr);

struct ExpressionProgram {
  snnjax::elementwise::ElementwiseProgram program;
  std::vector<poplar::Tensor> inputs;  // those of the tensors that it reads, in its order
  poplar::Type type;                   // of its output
};

// `tensors` are what the placeholders stand for. Halves are rounded after each operation, as the tile's are.
ExpressionProgram programOf(const popops::expr::Expr& expr, const std::vector<poplar::Tensor>& tensors);

}  // namespace poplibs
