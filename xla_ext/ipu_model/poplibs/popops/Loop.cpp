#include <popops/ElementWise.hpp>
#include <popops/Loop.hpp>
#include <poputil/exceptions.hpp>

#include "poplibs/popops/per_tile.hpp"

namespace popops {

namespace program = poplar::program;

program::Sequence countedLoop(poplar::Graph& graph, std::size_t begin, std::size_t end, std::size_t step,
                              const CountedLoopBodyType& body, const poplar::DebugContext& debug) {
  if (step == 0 || begin >= end) {
    throw poputil::poplibs_error("countedLoop: `begin, end, step` must describe at least one pass, got " +
                                 std::to_string(begin) + ", " + std::to_string(end) + ", " + std::to_string(step) +
                                 ". Leave the loop out where there is nothing to do.");
  }
  const poplar::Tensor counter = graph.addVariable(poplar::UNSIGNED_INT, {1}, {debug, "counter"});
  graph.setTileMapping(counter, 0);
  const poplar::Tensor first =
      poplibs::constantScalar(graph, poplar::UNSIGNED_INT, static_cast<double>(begin), {debug, "begin"});
  program::Sequence pass(debug);
  pass.add(body(counter));
  addInPlace(graph, counter, static_cast<unsigned>(step), pass, {debug, "step"});
  program::Sequence loop(debug);
  loop.add(program::Copy(first.reshape({1}), counter, false, debug));
  loop.add(program::Repeat(static_cast<unsigned>((end - begin + step - 1) / step), pass, debug));
  return loop;
}

program::Sequence countedLoop(poplar::Graph& graph, std::size_t count, const CountedLoopBodyType& body,
                              const poplar::DebugContext& debug) {
  return countedLoop(graph, 0, count, 1, body, debug);
}

}  // namespace popops
