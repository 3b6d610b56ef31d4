#include "poplibs/popops/expressions.hpp"

#include <algorithm>
#include <popops/Cast.hpp>
#include <poputil/Broadcast.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "poplibs/popops/codelet_names.hpp"
#include "poplibs/popops/elementwise_vertices.hpp"
#include "poplibs/popops/per_tile.hpp"

namespace poplibs {

namespace e = popops::expr;
using Shape = std::vector<std::size_t>;
using Destination = std::optional<poplar::Tensor>;

namespace {

Shape broadcastShape(const std::vector<poplar::Tensor>& tensors) {
  poplar::Tensor shape = tensors.front();
  for (poplar::Tensor tensor : tensors) poputil::broadcastToMatch(shape, tensor);
  return shape.shape();
}

[[noreturn]] void refuse(const std::string& what) { throw poputil::poplibs_error("popops::map: " + what); }

}  // namespace

poplar::Tensor Evaluator::evaluate(const e::Expr& expr, const Destination& out) {
  const Value result = materialised(value(expr, out));
  if (!out) return result.tensor;
  if (!(result.tensor == *out)) {  // a placeholder or a number alone
    poplar::Tensor source = result.tensor;
    poputil::broadcastToMatch(source, out->shape());
    prog_.add(poplar::program::Copy(source, *out, false, debug_));
  }
  return *out;
}

Evaluator::Value Evaluator::value(const e::Expr& expr, const Destination& out) {
  if (const auto simpler = rewritten(expr)) return value(*simpler, out);
  if (const auto* number = expr.getAs<e::Const>()) return {poplar::Tensor(), number, false};
  if (const auto* holder = expr.getAs<e::PlaceHolder>()) {
    if (holder->getIndex() < 1 || holder->getIndex() > tensors_.size()) {
      refuse("`expr` must use placeholders 1 to " + std::to_string(tensors_.size()) + ", got " +
             std::to_string(holder->getIndex()) + ". Give one tensor for each placeholder.");
    }
    return {tensors_[holder->getIndex() - 1], nullptr, false};
  }
  if (const auto* op = expr.getAs<e::Cast>()) return converted(*op, out);
  if (const auto* op = expr.getAs<e::UnaryOp>()) return unary(*op, out);
  if (const auto* op = expr.getAs<e::BinaryOp>()) return binary(*op, out);
  const auto& op = *expr.getAs<e::TernaryOp>();
  if (op.getOpType() == e::TernaryOpType::SELECT) return select(op, out);
  return value(e::Min(e::Max(op.getArg0(), op.getArg1()), op.getArg2()), out);
}

// Arguments are evaluated into tensors of their own: `out` may be one of the operands still to be read.
Evaluator::Value Evaluator::unary(const e::UnaryOp& op, const Destination& out) {
  const Value argument = materialised(value(op.getArg(), std::nullopt));
  const poplar::Type type = argument.tensor.elementType();
  return execute(unaryCodelet(op.getOpType(), type), {argument}, type, givesBool(op.getOpType()) ? poplar::BOOL : type,
                 out);
}

Evaluator::Value Evaluator::binary(const e::BinaryOp& op, const Destination& out) {
  std::vector<Value> operands{value(op.getLHS(), std::nullopt), value(op.getRHS(), std::nullopt)};
  if (operands[0].isNumber() && operands[1].isNumber()) operands[0] = materialised(operands[0]);
  const poplar::Type type = commonType(operands);
  return execute(binaryCodelet(op.getOpType(), type), operands, type, givesBool(op.getOpType()) ? poplar::BOOL : type,
                 out);
}

Evaluator::Value Evaluator::select(const e::TernaryOp& op, const Destination& out) {
  std::vector<Value> operands{value(op.getArg0(), std::nullopt), value(op.getArg1(), std::nullopt)};
  if (operands[0].isNumber() && operands[1].isNumber()) operands[0] = materialised(operands[0]);
  const poplar::Type type = commonType(operands);
  operands.push_back(materialised(value(op.getArg2(), std::nullopt)));
  if (!(operands[2].tensor.elementType() == poplar::BOOL)) {
    refuse("`predicate` of a select must be of type bool, got " + operands[2].tensor.elementType().toString() +
           ". Compare it with a number.");
  }
  return execute(selectCodelet(type), operands, type, type, out);
}

Evaluator::Value Evaluator::converted(const e::Cast& op, const Destination& out) {
  const Value argument = materialised(value(op.getLHS(), std::nullopt));
  if (argument.tensor.elementType() == op.getRHSType()) return argument;
  if (!out) return {popops::cast(graph_, argument.tensor, op.getRHSType(), prog_, debug_), nullptr, true};
  prog_.add(popops::cast(graph_, argument.tensor, *out, debug_));
  return {*out, nullptr, false};
}

Evaluator::Value Evaluator::materialised(Value value) {
  if (!value.isNumber()) return value;
  const poplar::Type type = value.number->getType();
  return {constantScalar(graph_, type, value.number->getDataAsDouble(), debug_), nullptr, false};
}

poplar::Type Evaluator::commonType(const std::vector<Value>& values) const {
  std::optional<poplar::Type> type;
  for (const Value& value : values) {
    if (value.isNumber()) continue;
    if (type && !(*type == value.tensor.elementType())) {
      refuse("`operands` must have one type, got " + type->toString() + " and " +
             value.tensor.elementType().toString() + ". Cast one of them.");
    }
    type = value.tensor.elementType();
  }
  return *type;
}

poplar::Tensor outputLike(poplar::Graph& graph, const std::vector<poplar::Tensor>& inputs, const poplar::Type& type,
                          const poplar::DebugContext& debug) {
  const Shape shape = broadcastShape(inputs);
  const poplar::Tensor* best = nullptr;
  unsigned best_tiles = 0;
  for (const poplar::Tensor& input : inputs) {
    if (input.shape() != shape || input.containsAliases() || !isMapped(graph, input)) continue;
    const unsigned tiles = numTilesUsed(graph.getTileMapping(input));
    if (tiles > best_tiles) {
      best = &input;
      best_tiles = tiles;
    }
  }
  if (best != nullptr) return cloneOnTiles(graph, type, *best, debug);
  const poplar::Tensor result = graph.addVariable(type, shape, debug);
  poputil::mapTensorLinearly(graph, result);
  return result;
}

// The result replaces a temporary operand of the same shape and type, so that a chain needs little memory; else it is
// a new tensor on the tiles of the operand that uses most of them.
poplar::Tensor Evaluator::destination(const std::vector<Value>& operands, const poplar::Type& type,
                                      const Destination& out) {
  std::vector<poplar::Tensor> tensors;
  for (const Value& operand : operands) {
    if (!operand.isNumber()) tensors.push_back(operand.tensor);
  }
  const Shape shape = broadcastShape(tensors);
  if (out) {
    if (out->shape() != shape || !(out->elementType() == type)) {
      refuse("`out` must be " + type.toString() + toString(shape) + ", got " + out->elementType().toString() +
             toString(out->shape()) + ". Broadcast or cast the operands.");
    }
    return *out;
  }
  for (const Value& operand : operands) {
    const bool fits = !operand.isNumber() && operand.tensor.shape() == shape;
    if (fits && operand.temporary && operand.tensor.elementType() == type) return operand.tensor;
  }
  return outputLike(graph_, tensors, type, debug_);
}

Evaluator::Value Evaluator::execute(const std::string& codelet, const std::vector<Value>& operands,
                                    const poplar::Type& type, const poplar::Type& result_type, const Destination& out) {
  if (codelet.empty()) refuse("`operation` must exist for the operands' type, got none. Cast the operands to float.");
  const poplar::Tensor result = destination(operands, result_type, out);
  std::vector<Operand> inputs;
  for (const Value& operand : operands) {
    if (operand.isNumber()) {
      inputs.push_back({poplar::Tensor(), operand.number->getDataAsDouble()});
    } else {
      poplar::Tensor view = operand.tensor;
      if (view.numElements() != 1) poputil::broadcastToMatch(view, result.shape());
      inputs.push_back({view, 0});
    }
  }
  const poplar::ComputeSet cs = graph_.addComputeSet({debug_, "map"});
  addElementwise(graph_, cs, codelet, inputs, type, result);
  prog_.add(poplar::program::Execute(cs, debug_));
  return {result, nullptr, !out.has_value()};
}

}  // namespace poplibs
