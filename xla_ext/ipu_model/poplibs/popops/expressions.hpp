// Expressions on their way to codelets: each operation of a tree becomes one compute set.
#pragma once

#include <memory>
#include <optional>
#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <popops/Expr.hpp>
#include <vector>

namespace poplibs {

// Operations that have no codelet, in terms of those that have one; null for the others.
std::unique_ptr<popops::expr::Expr> rewritten(const popops::expr::Expr& expr);

// A new tensor of the inputs' broadcast shape, on the tiles of the input of that shape that uses most of them.
poplar::Tensor outputLike(poplar::Graph& graph, const std::vector<poplar::Tensor>& inputs, const poplar::Type& type,
                          const poplar::DebugContext& debug);

class Evaluator {
 public:
  Evaluator(poplar::Graph& graph, poplar::program::Sequence& prog, const std::vector<poplar::Tensor>& tensors,
            const poplar::DebugContext& debug)
      : graph_(graph), prog_(prog), tensors_(tensors), debug_(debug) {}

  // The value of the expression: into `out` where there is one, else into a new tensor.
  poplar::Tensor evaluate(const popops::expr::Expr& expr, const std::optional<poplar::Tensor>& out);

 private:
  // A tensor, or a number that has yet to take its neighbours' type.
  struct Value {
    poplar::Tensor tensor;
    const popops::expr::Const* number = nullptr;
    bool temporary = false;  // made for this expression, and used in one place: it may be overwritten

    bool isNumber() const { return number != nullptr; }
  };

  Value value(const popops::expr::Expr& expr, const std::optional<poplar::Tensor>& out);
  Value unary(const popops::expr::UnaryOp& op, const std::optional<poplar::Tensor>& out);
  Value binary(const popops::expr::BinaryOp& op, const std::optional<poplar::Tensor>& out);
  Value select(const popops::expr::TernaryOp& op, const std::optional<poplar::Tensor>& out);
  Value converted(const popops::expr::Cast& op, const std::optional<poplar::Tensor>& out);
  Value materialised(Value value);
  poplar::Type commonType(const std::vector<Value>& values) const;
  poplar::Tensor destination(const std::vector<Value>& operands, const poplar::Type& type,
                             const std::optional<poplar::Tensor>& out);
  Value execute(const std::string& codelet, const std::vector<Value>& operands, const poplar::Type& type,
                const poplar::Type& result_type, const std::optional<poplar::Tensor>& out);

  poplar::Graph& graph_;
  poplar::program::Sequence& prog_;
  const std::vector<poplar::Tensor>& tensors_;
  poplar::DebugContext debug_;
};

}  // namespace poplibs
