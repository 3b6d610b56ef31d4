// popnn's non-linearities, as expressions of popops.
#include <popnn/NonLinearity.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>
#include <poputil/exceptions.hpp>

namespace popnn {
namespace {

namespace pe = popops::expr;
using poplar::Tensor;
using poplar::program::Sequence;

// GELU(x) = x (1 + tanh(kScale (x + kCubic x^3))) / 2 (Hendrycks and Gimpel 2016, arXiv:1606.08415)
constexpr float kScale = 0.7978845608F, kCubic = 0.044715F;
// Hard sigmoid: min(max(kSlope x + 1/2, 0), 1), as in ONNX.
constexpr float kSlope = 0.2F;

bool isSoftmax(NonLinearityType type) {
  return type == NonLinearityType::SOFTMAX || type == NonLinearityType::SOFTMAX_STABLE;
}

[[noreturn]] void refuse() {
  throw poputil::poplibs_error(
      "popnn::nonLinearity: `type` must be another than SOFTMAX_SCALED, got it. Scale the result of SOFTMAX.");
}

// Of each row, in the shape of the rows.
Tensor overRows(poplar::Graph& graph, const Tensor& t, popops::Operation operation, Sequence& prog,
                const poplar::DebugContext& debug) {
  const auto last = static_cast<unsigned>(t.rank() - 1);
  return popops::reduce(graph, t, {last}, operation, prog, debug)
      .expand({last})
      .broadcast(static_cast<unsigned>(t.dim(last)), last);
}

void checkRows(const Tensor& t) {
  if (t.rank() > 0 && t.numElements() > 0) return;
  throw poputil::poplibs_error("popnn::nonLinearity: `t` must have elements in rows for a softmax, got shape " +
                               t.shapeToString() + ". Expand it.");
}

void softmaxOfRows(poplar::Graph& graph, const Tensor& t, Sequence& prog, const poplar::DebugContext& debug) {
  checkRows(t);
  const Tensor most = overRows(graph, t, popops::Operation::MAX, prog, debug);
  popops::mapInPlace(graph, pe::Exp(pe::_1 - pe::_2), {t, most}, prog, debug);
  popops::divInPlace(graph, t, overRows(graph, t, popops::Operation::ADD, prog, debug), prog, debug);
}

}  // namespace

void nonLinearityInPlace(poplar::Graph& graph, NonLinearityType type, Tensor t, Sequence& prog,
                         const poplar::DebugContext& debug, const poplar::OptionFlags&) {
  const auto apply = [&](const pe::Expr& f) { popops::mapInPlace(graph, f, {t}, prog, debug); };
  switch (type) {
    case NonLinearityType::SIGMOID: return apply(pe::Sigmoid(pe::_1));
    case NonLinearityType::HARD_SIGMOID:
      return apply(pe::Clamp(kSlope * pe::_1 + 0.5F, pe::Const(0.0F), pe::Const(1.0F)));
    case NonLinearityType::RELU: return apply(pe::Relu(pe::_1));
    case NonLinearityType::TANH: return apply(pe::Tanh(pe::_1));
    case NonLinearityType::GELU:
      return apply(0.5F * pe::_1 * (1.0F + pe::Tanh(kScale * (pe::_1 + kCubic * pe::_1 * pe::_1 * pe::_1))));
    case NonLinearityType::SWISH: return apply(pe::_1 * pe::Sigmoid(pe::_1));
    case NonLinearityType::SOFTMAX:
    case NonLinearityType::SOFTMAX_STABLE: return softmaxOfRows(graph, t, prog, debug);
    case NonLinearityType::SOFTMAX_SCALED: break;
  }
  refuse();
}

Tensor nonLinearity(poplar::Graph& graph, NonLinearityType type, Tensor t, Sequence& prog,
                    const poplar::DebugContext& debug, const poplar::OptionFlags& options) {
  const Tensor out = graph.clone(t, debug);
  prog.add(poplar::program::Copy(t, out, false, debug));
  nonLinearityInPlace(graph, type, out, prog, debug, options);
  return out;
}

Tensor nonLinearityInputGradient(poplar::Graph& graph, NonLinearityType type, Tensor act, Tensor out_gradient,
                                 Sequence& prog, const poplar::DebugContext& debug, const poplar::OptionFlags&) {
  if (isSoftmax(type)) {  // y (g - sum of g y)
    checkRows(act);
    const Tensor products = popops::mul(graph, act, out_gradient, prog, debug);
    const Tensor sums = overRows(graph, products, popops::Operation::ADD, prog, debug);
    return popops::map(graph, pe::_1 * (pe::_2 - pe::_3), {act, out_gradient, sums}, prog, debug);
  }
  const auto times = [&](const pe::Expr& derivative) {
    return popops::map(graph, derivative * pe::_2, {act, out_gradient}, prog, debug);
  };
  const auto inside = kScale * (pe::_1 + kCubic * pe::_1 * pe::_1 * pe::_1);
  switch (type) {
    case NonLinearityType::SIGMOID: return times(pe::_1 * (1.0F - pe::_1));
    case NonLinearityType::HARD_SIGMOID:
      return popops::map(graph, pe::Select(kSlope * pe::_2, pe::Const(0.0F), pe::_1 > 0.0F && pe::_1 < 1.0F),
                         {act, out_gradient}, prog, debug);
    case NonLinearityType::RELU:
      return popops::map(graph, pe::Select(pe::_2, pe::Const(0.0F), pe::_1 > 0.0F), {act, out_gradient}, prog, debug);
    case NonLinearityType::TANH: return times(1.0F - pe::_1 * pe::_1);
    case NonLinearityType::GELU:
      return times(0.5F * (1.0F + pe::Tanh(inside)) + 0.5F * pe::_1 * (1.0F - pe::Square(pe::Tanh(inside))) *
                                                          (kScale * (1.0F + 3 * kCubic * pe::_1 * pe::_1)));
    case NonLinearityType::SWISH: return times(pe::Sigmoid(pe::_1) * (1.0F + pe::_1 * (1.0F - pe::Sigmoid(pe::_1))));
    default: refuse();
  }
}

}  // namespace popnn
