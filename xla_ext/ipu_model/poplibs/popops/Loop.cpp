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

program::Sequence countedForLoop(poplar::Graph& graph, const poplar::Tensor& count, int initial_count,
                                 const poplar::Tensor& count_limit, int count_step, const program::Program& body,
                                 const poplar::DebugContext& debug) {
  const poplar::Type type = count.elementType();
  if (!(type == count_limit.elementType()) || !(type == poplar::INT || type == poplar::UNSIGNED_INT)) {
    throw poputil::poplibs_error("countedForLoop: `count` must be of the limit's type, int or unsigned int, got " +
                                 type.toString() + " and " + count_limit.elementType().toString() +
                                 ". Create both with one of these types.");
  }
  const poplar::Tensor scalar = count.reshape({});
  const poplar::Tensor first = poplibs::constantScalar(graph, type, initial_count, {debug, "begin"});
  const poplar::Tensor more = graph.addVariable(poplar::BOOL, {}, {debug, "more"});
  graph.setTileMapping(more, 0);
  program::Sequence condition(debug);
  mapWithOutput(graph, expr::BinaryOpType::NOT_EQUAL, scalar, count_limit.reshape({}), more, condition, debug);
  // The comparison comes before the body, the step after it: the body sees the counter of its own pass.
  program::Sequence pass(debug);
  pass.add(body);
  addInPlace(graph, scalar, count_step, pass, {debug, "step"});
  program::Sequence loop(debug);
  loop.add(program::Copy(first, scalar, false, debug));
  loop.add(program::RepeatWhileTrue(condition, more, pass, debug));
  return loop;
}

program::Sequence countedForLoop(poplar::Graph& graph, int initial_count, const poplar::Tensor& count_limit,
                                 int count_step, const program::Program& body, const poplar::DebugContext& debug) {
  const poplar::Tensor count = graph.addVariable(count_limit.elementType(), {}, {debug, "counter"});
  graph.setTileMapping(count, 0);
  return countedForLoop(graph, count, initial_count, count_limit, count_step, body, debug);
}

}  // namespace popops
