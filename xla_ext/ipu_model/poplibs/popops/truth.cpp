// Single Booleans from whole tensors.
#include <popops/AllTrue.hpp>
#include <popops/ElementWise.hpp>
#include <popops/NaN.hpp>
#include <popops/Reduce.hpp>
#include <poputil/exceptions.hpp>

namespace popops {

poplar::Tensor allTrue(poplar::Graph& graph, poplar::Tensor a, poplar::program::Sequence& prog,
                       const poplar::DebugContext& debug) {
  if (!(a.elementType() == poplar::BOOL)) {
    throw poputil::poplibs_error("popops::allTrue: `a` must be of type bool, got " + a.elementType().toString() +
                                 ". Compare it with a number.");
  }
  return reduce(graph, a.flatten(), {0}, Operation::LOGICAL_AND, prog, debug);
}

poplar::Tensor hasNaN(poplar::Graph& graph, const poplar::Tensor& src, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debug) {
  return reduce(graph, isNaN(graph, src.flatten(), prog, debug), {0}, Operation::LOGICAL_OR, prog, debug);
}

poplar::Tensor hasNaNOrInf(poplar::Graph& graph, const poplar::Tensor& src, poplar::program::Sequence& prog,
                           const poplar::DebugContext& debug) {
  const poplar::Tensor finite = isFinite(graph, src.flatten(), prog, debug);
  return reduce(graph, logicalNot(graph, finite, prog, debug), {0}, Operation::LOGICAL_OR, prog, debug);
}

}  // namespace popops
