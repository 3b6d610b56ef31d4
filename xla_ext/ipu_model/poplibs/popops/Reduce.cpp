// Reductions: what is reduced, into what, and what becomes of the result. Their stages are in reduction_stages.cpp.
#include <algorithm>
#include <limits>
#include <ostream>
#include <popops/ElementWise.hpp>
#include <popops/Fill.hpp>
#include <popops/Reduce.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "poplibs/popops/per_tile.hpp"
#include "poplibs/popops/reduction_stages.hpp"

namespace poplibs {
namespace {

using popops::Operation;

double neutral(Operation op, const poplar::Type& type) {
  const bool real = type == poplar::FLOAT || type == poplar::HALF, is_signed = type == poplar::INT;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (op) {
    case Operation::MUL:
    case Operation::LOGICAL_AND: return 1;
    case Operation::MIN: return real ? kInfinity : is_signed ? 2147483647.0 : 4294967295.0;
    case Operation::MAX: return real ? -kInfinity : is_signed ? -2147483648.0 : 0.0;
    default: return 0;
  }
}

// [reduced, outputs]
poplar::Tensor asMatrix(const poplar::Tensor& in, const std::vector<std::size_t>& dims) {
  std::vector<unsigned> order;
  std::size_t reduced = 1;
  for (unsigned d = 0; d < in.rank(); ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) continue;
    order.push_back(d);
    reduced *= in.dim(d);
  }
  for (unsigned d = 0; d < in.rank(); ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) order.push_back(d);
  }
  const std::size_t outputs = reduced == 0 ? 0 : in.numElements() / reduced;
  return in.dimShuffle(order).reshape({reduced, outputs});
}

std::vector<std::size_t> keptShape(const poplar::Tensor& in, const std::vector<std::size_t>& dims) {
  for (const std::size_t d : dims) {
    if (d >= in.rank()) {
      throw poputil::poplibs_error("popops::reduce: `dims` must be below the rank (" + std::to_string(in.rank()) +
                                   "), got " + std::to_string(d) + ". Count dimensions from 0.");
    }
  }
  std::vector<std::size_t> shape;
  for (unsigned d = 0; d < in.rank(); ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) shape.push_back(in.dim(d));
  }
  return shape;
}

}  // namespace
}  // namespace poplibs

namespace popops {

std::ostream& operator<<(std::ostream& stream, Operation operation) {
  switch (operation) {
    case Operation::ADD: return stream << "ADD";
    case Operation::MUL: return stream << "MUL";
    case Operation::MIN: return stream << "MIN";
    case Operation::MAX: return stream << "MAX";
    case Operation::LOGICAL_AND: return stream << "LOGICAL_AND";
    case Operation::LOGICAL_OR: return stream << "LOGICAL_OR";
    case Operation::SQUARE_ADD: return stream << "SQUARE_ADD";
    case Operation::LOG_ADD: return stream << "LOG_ADD";
  }
  return stream;
}

namespace {

// Sizes of 1 hold no place: a row of 64 takes 64 sums.
std::vector<std::size_t> withoutOnes(std::vector<std::size_t> shape) {
  shape.erase(std::remove(shape.begin(), shape.end(), 1), shape.end());
  return shape;
}

void checkReduce(const poplar::Tensor& in, const poplar::Tensor& out, const std::vector<std::size_t>& dims,
                 const ReduceParams& params) {
  const std::vector<std::size_t> shape = poplibs::keptShape(in, dims);
  if (withoutOnes(out.shape()) != withoutOnes(shape)) {
    throw poputil::poplibs_error("popops::reduceWithOutput: `out` must have the shape " + poplibs::toString(shape) +
                                 ", got " + poplibs::toString(out.shape()) + ". Leave the reduced dimensions out.");
  }
  const bool adds = params.op == Operation::ADD || params.op == Operation::SQUARE_ADD;
  if ((params.update || params.useScale) && !adds) {
    throw poputil::poplibs_error(
        "popops::reduce: `op` must be ADD or SQUARE_ADD with update or scale, got another. Apply them afterwards.");
  }
  if (poplibs::reduceCodelet(params.op, in.elementType(), out.elementType()).empty()) {
    throw poputil::poplibs_error("popops::reduce: `op` must exist for the types, got " + in.elementType().toString() +
                                 " to " + out.elementType().toString() + ". Cast the input, or the result.");
  }
}

void addStages(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Tensor& out,
               const std::vector<std::size_t>& dims, Operation op, std::vector<poplar::ComputeSet>& stages,
               const poplar::DebugContext& debug) {
  poplibs::addReductionStages(graph, poplibs::asMatrix(in, dims), out.flatten(), op, stages, debug);
}

// Mapped like any result.
poplar::Tensor addOutput(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Type& type,
                         const std::vector<std::size_t>& dims, const ReduceParams& params,
                         const poplar::DebugContext& debug) {
  if (params.update) {
    throw poputil::poplibs_error(
        "popops::reduce: `update` must be false, got true. Call reduceWithOutput with the tensor to update.");
  }
  const poplar::Tensor out = graph.addVariable(type, poplibs::keptShape(in, dims), {debug, "out"});
  poputil::mapTensorLinearly(graph, out);
  return out;
}

}  // namespace

void reduceWithOutput(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Tensor& out,
                      const std::vector<std::size_t>& dims, ReduceParams params, std::vector<poplar::ComputeSet>& css,
                      const poplar::DebugContext& debug, const poplar::OptionFlags&) {
  checkReduce(in, out, dims, params);
  if (params.update || params.useScale || in.numElements() == 0) {
    throw poputil::poplibs_error(
        "popops::reduce: `css` must get a reduction of some elements without update or scale, got another. Pass a "
        "Sequence instead.");
  }
  if (!poplibs::isMapped(graph, out)) poputil::mapTensorLinearly(graph, out);
  addStages(graph, in, out, dims, params.op, css, debug);
}

poplar::Tensor reduce(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Type& out_type,
                      const std::vector<std::size_t>& dims, ReduceParams params, std::vector<poplar::ComputeSet>& css,
                      const poplar::DebugContext& debug, const poplar::OptionFlags& options) {
  const poplar::Tensor out = addOutput(graph, in, out_type, dims, params, debug);
  reduceWithOutput(graph, in, out, dims, params, css, debug, options);
  return out;
}

poplar::Tensor reduce(poplar::Graph& graph, const poplar::Tensor& in, const std::vector<std::size_t>& dims,
                      ReduceParams params, std::vector<poplar::ComputeSet>& css, const poplar::DebugContext& debug,
                      const poplar::OptionFlags& options) {
  return reduce(graph, in, in.elementType(), dims, params, css, debug, options);
}

void reduceWithOutput(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Tensor& out,
                      const std::vector<std::size_t>& dims, ReduceParams params, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debug, const poplar::OptionFlags&) {
  checkReduce(in, out, dims, params);
  if (!poplibs::isMapped(graph, out)) poputil::mapTensorLinearly(graph, out);
  if (out.numElements() == 0) return;
  const bool then_change = params.update || params.useScale;
  const poplar::Tensor result =
      then_change ? poplibs::cloneOnTiles(graph, out.elementType(), out, {debug, "sum"}) : out;
  if (in.numElements() == 0) {
    fill(graph, result, prog, poplibs::neutral(params.op, out.elementType()), debug);
  } else {
    std::vector<poplar::ComputeSet> stages;
    addStages(graph, in, result, dims, params.op, stages, debug);
    for (const poplar::ComputeSet& stage : stages) prog.add(poplar::program::Execute(stage, debug));
  }
  if (params.useScale) {
    const poplar::Type type = out.elementType();
    mapInPlace(graph, expr::_1 * expr::Cast(expr::_2, type), {result, params.scale.reshape({})}, prog, debug);
  }
  if (params.update) addInPlace(graph, out, result, prog, debug);
  if (then_change && !params.update) prog.add(poplar::program::Copy(result, out, false, debug));
}

poplar::Tensor reduce(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Type& out_type,
                      const std::vector<std::size_t>& dims, ReduceParams params, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debug, const poplar::OptionFlags& options) {
  const poplar::Tensor out = addOutput(graph, in, out_type, dims, params, debug);
  reduceWithOutput(graph, in, out, dims, params, prog, debug, options);
  return out;
}

poplar::Tensor reduce(poplar::Graph& graph, const poplar::Tensor& in, const std::vector<std::size_t>& dims,
                      ReduceParams params, poplar::program::Sequence& prog, const poplar::DebugContext& debug,
                      const poplar::OptionFlags& options) {
  return reduce(graph, in, in.elementType(), dims, params, prog, debug, options);
}

void reduceMany(poplar::Graph& graph, const std::vector<SingleReduceOp>& reductions,
                std::vector<poplar::Tensor>& outputs, poplar::program::Sequence& prog,
                const poplar::DebugContext& debug, const poplar::OptionFlags& options) {
  const bool create = outputs.empty();
  for (std::size_t i = 0; i < reductions.size(); ++i) {
    const SingleReduceOp& one = reductions[i];
    const poplar::Type type = one.useOutType ? one.outType : one.in.elementType();
    if (create) {
      outputs.push_back(graph.addVariable(type, poplibs::keptShape(one.in, one.dims), {debug, one.debugName}));
      poputil::mapTensorLinearly(graph, outputs.back());
    }
    reduceWithOutput(graph, one.in, outputs[i], one.dims, one.params, prog, {debug, one.debugName}, options);
  }
}

}  // namespace popops
