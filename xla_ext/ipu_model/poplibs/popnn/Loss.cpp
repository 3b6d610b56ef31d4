// popnn's losses, as expressions and reductions of popops.
#include <popnn/Loss.hpp>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Encoding.hpp>
#include <popops/Reduce.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

namespace popnn {
namespace {

namespace pe = popops::expr;
using poplar::Tensor;
using poplar::program::Copy;
using poplar::program::Sequence;

void checkRows(const Tensor& outputs, const Tensor& expected, const char* function) {
  const bool labels = expected.elementType() == poplar::UNSIGNED_INT || expected.elementType() == poplar::INT;
  if (labels && outputs.rank() == 2 && expected.rank() == 1 && expected.dim(0) == outputs.dim(0)) return;
  throw poputil::poplibs_error(std::string("popnn::") + function +
                               ": `modelOutputs, expected` must be {batch, classes} and {batch} of labels, got " +
                               outputs.getDebugStr() + " and " + expected.getDebugStr() + ". Reshape or cast them.");
}

Tensor overClasses(poplar::Graph& graph, const Tensor& t, popops::Operation operation, Sequence& prog,
                   const poplar::DebugContext& debug) {
  return popops::reduce(graph, t, {1}, operation, prog, debug);
}

Tensor inRows(const Tensor& t, const Tensor& like) {
  return t.expand({1}).broadcast(static_cast<unsigned>(like.dim(1)), 1);
}

// The first place at which a row holds its extreme element: the least number among such places.
Tensor firstPlace(poplar::Graph& graph, const Tensor& input, popops::Operation extreme, Sequence& prog,
                  const poplar::DebugContext& debug) {
  const auto classes = static_cast<unsigned>(input.dim(1));
  const Tensor numbers = graph.addVariable(poplar::INT, {classes}, {debug, "numbers"});
  poputil::mapTensorLinearly(graph, numbers);
  popops::iota(graph, numbers, 0, prog, debug);
  const Tensor best = inRows(overClasses(graph, input, extreme, prog, debug), input);
  const Tensor rows = numbers.expand({0}).broadcast(static_cast<unsigned>(input.dim(0)), 0);
  const Tensor is_best = popops::eq(graph, input, best, prog, debug);
  const Tensor places = popops::map(graph, pe::Select(pe::_1, pe::Const(static_cast<int>(classes)), pe::_2),
                                    {rows, is_best}, prog, debug);
  const Tensor first = overClasses(graph, places, popops::Operation::MIN, prog, debug);
  return popops::cast(graph, first, poplar::UNSIGNED_INT, prog, debug);
}

}  // namespace

Tensor argMax(poplar::Graph& graph, const Tensor& input, Sequence& prog, const poplar::DebugContext& debug) {
  return firstPlace(graph, input, popops::Operation::MAX, prog, debug);
}

Tensor argMin(poplar::Graph& graph, const Tensor& input, Sequence& prog, const poplar::DebugContext& debug) {
  return firstPlace(graph, input, popops::Operation::MIN, prog, debug);
}

poplar::program::Program calcLoss(poplar::Graph& graph, const Tensor& model_outputs, const Tensor& expected,
                                  const Tensor& loss, const Tensor& deltas, LossType type,
                                  const poplar::DebugContext& debug, const poplar::OptionFlags&) {
  checkRows(model_outputs, expected, "calcLoss");
  Sequence prog;
  const Tensor hot = graph.clone(model_outputs, {debug, "oneHot"});
  popops::encodeOneHot(graph, expected, hot, prog, debug);
  // 1 for a row that counts, 0 for one whose label is no class.
  const Tensor counts = overClasses(graph, hot, popops::Operation::ADD, prog, debug);
  popops::mapWithOutput(graph, (pe::_1 - pe::_2) * pe::_3, {model_outputs, hot, inRows(counts, hot)}, deltas, prog,
                        debug);
  if (type == SUM_SQUARED_LOSS) {
    const Tensor squares = overClasses(graph, deltas, popops::Operation::SQUARE_ADD, prog, debug);
    popops::mapWithOutput(graph, 0.5F * pe::_1, {squares}, loss, prog, debug);
  } else {
    popops::mulInPlace(graph, hot, model_outputs, prog, debug);
    const Tensor of_label = overClasses(graph, hot, popops::Operation::ADD, prog, debug);
    popops::mapWithOutput(graph, -pe::Log(pe::_1 + (1.0F - pe::_2)), {of_label, counts}, loss, prog, debug);
  }
  return prog;
}

poplar::program::Program calcLoss(poplar::Graph& graph, const Tensor& model_outputs, const Tensor& expected,
                                  const Tensor& loss, const Tensor& deltas, const Tensor& num_correct, LossType type,
                                  const poplar::DebugContext& debug, const poplar::OptionFlags& options) {
  return Sequence(calcLoss(graph, model_outputs, expected, loss, deltas, type, debug, options),
                  calcAccuracy(graph, model_outputs, expected, num_correct, debug));
}

poplar::program::Program calcAccuracy(poplar::Graph& graph, const Tensor& model_outputs, const Tensor& expected,
                                      const Tensor& num_correct, const poplar::DebugContext& debug) {
  checkRows(model_outputs, expected, "calcAccuracy");
  Sequence prog;
  const Tensor best = argMax(graph, model_outputs, prog, debug);
  const Tensor right = popops::eq(graph, best, expected.reinterpret(poplar::UNSIGNED_INT), prog, debug);
  const Tensor ones = popops::cast(graph, right, poplar::INT, prog, debug);
  const Tensor sum = popops::reduce(graph, ones, {0}, popops::Operation::ADD, prog, debug);
  prog.add(Copy(sum.reinterpret(poplar::UNSIGNED_INT).reshape(num_correct.shape()), num_correct, false, debug));
  return prog;
}

}  // namespace popnn
