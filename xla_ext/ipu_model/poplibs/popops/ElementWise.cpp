#include <popops/ElementWise.hpp>
#include <poputil/exceptions.hpp>

#include "poplibs/popops/expressions.hpp"

namespace popops {

poplar::Tensor map(poplar::Graph& graph, const expr::Expr& expr, const std::vector<poplar::Tensor>& ts,
                   poplar::program::Sequence& prog, const poplar::DebugContext& debug, const poplar::OptionFlags&) {
  return poplibs::evaluate(graph, prog, expr, ts, std::nullopt, debug);
}

void mapInPlace(poplar::Graph& graph, const expr::Expr& expr, const std::vector<poplar::Tensor>& ts,
                poplar::program::Sequence& prog, const poplar::DebugContext& debug,
                const poplar::OptionFlags& options) {
  if (ts.empty() || !ts[0].isParallelWriteable()) {
    throw poputil::poplibs_error("popops::mapInPlace: `ts[0]` must be a tensor that can be written, got " +
                                 std::string(ts.empty() ? "none" : "one with aliases or constants") +
                                 ". Use popops::map and its result.");
  }
  mapWithOutput(graph, expr, ts, ts[0], prog, debug, options);
}

void mapWithOutput(poplar::Graph& graph, const expr::Expr& expr, const std::vector<poplar::Tensor>& ts,
                   const poplar::Tensor& out, poplar::program::Sequence& prog, const poplar::DebugContext& debug,
                   const poplar::OptionFlags&) {
  poplibs::evaluate(graph, prog, expr, ts, out, debug);
}

}  // namespace popops
