// Operations that programs do not have.
#include <cmath>
#include <numbers>

#include "poplibs/popops/expression_program.hpp"

namespace poplibs {

namespace e = popops::expr;

namespace {

std::unique_ptr<e::Expr> rewrittenUnary(const e::UnaryOp& op) {
  const e::Expr& x = op.getArg();
  switch (op.getOpType()) {
    case e::UnaryOpType::GELU_ERF:  // x * P(X <= x) of a standard normal X
      return (x * 0.5F * (e::Erf(x * static_cast<float>(std::numbers::sqrt2 / 2)) + 1.0F)).clone();
    case e::UnaryOpType::RELU: return e::Max(x, e::Const(0)).clone();
    default: return nullptr;
  }
}

std::unique_ptr<e::Expr> rewrittenBinary(const e::BinaryOp& op) {
  const e::Expr &a = op.getLHS(), &b = op.getRHS();
  switch (op.getOpType()) {
    case e::BinaryOpType::BITWISE_XNOR: return (~(a ^ b)).clone();
    case e::BinaryOpType::INV_STD_DEV_TO_VARIANCE:  // a: 1 / sqrt(variance + b)
      return (e::Inv(e::Square(a)) - b).clone();
    case e::BinaryOpType::VARIANCE_TO_INV_STD_DEV: return e::Rsqrt(a + b).clone();
    default: return nullptr;
  }
}

}  // namespace

std::unique_ptr<e::Expr> rewritten(const e::Expr& expr) {
  if (const auto* op = expr.getAs<e::UnaryOp>()) return rewrittenUnary(*op);
  if (const auto* op = expr.getAs<e::BinaryOp>()) return rewrittenBinary(*op);
  return nullptr;
}

}  // namespace poplibs
