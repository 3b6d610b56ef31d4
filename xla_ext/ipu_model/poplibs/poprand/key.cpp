#include "poplibs/poprand/key.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <popops/ElementWise.hpp>
#include <poputil/exceptions.hpp>

namespace poplibs {
namespace {

// Any fixed number: a program that sets no seed draws the same in each run, as the hardware does not.
constexpr unsigned kFirstKey[] = {0x243f6a88U, 0U};  // the first binary digits of pi

// The state lies in a variable of the graph, which all draws without a seed must find again.
poplar::Tensor stateOf(poplar::Graph& graph) {
  using Owner = std::weak_ptr<ipu_model::GraphData>;
  static std::mutex mutex;
  // Never destroyed: threads may outlive it.
  static auto& states = *new std::map<Owner, poplar::Tensor, std::owner_less<Owner>>;
  const std::lock_guard lock(mutex);
  std::erase_if(states, [](const auto& entry) { return entry.first.expired(); });
  const auto [entry, is_new] = states.try_emplace(graph.data());
  if (is_new) {
    poplar::Graph top = graph.getTopLevelGraph();
    entry->second = top.addVariable(poplar::UNSIGNED_INT, {2}, "poprand/state");
    top.setTileMapping(entry->second, 0);
    top.setInitialValue(entry->second, poplar::ArrayRef<unsigned>(kFirstKey));
  }
  return entry->second;
}

// Another seed for each modifier, and the seed itself for 0.
poplar::Tensor modified(poplar::Graph& graph, const poplar::Tensor& seed, std::uint32_t modifier,
                        poplar::program::Sequence& prog, const poplar::DebugContext& debug) {
  if (seed.numElements() != 2 || !(seed.elementType() == poplar::UNSIGNED_INT)) {
    throw poputil::poplibs_error("poprand: `seed` must be unsigned int{2}, got " + seed.elementType().toString() +
                                 seed.shapeToString() + ". Create it with that type and shape.");
  }
  if (modifier == 0) return seed.flatten();
  constexpr std::uint32_t kGolden = 0x9e3779b9U;  // 2^32 divided by the golden ratio: spreads small numbers
  const unsigned words[] = {modifier * kGolden, modifier};
  const poplar::Tensor mask =
      graph.addConstant(poplar::UNSIGNED_INT, {2}, poplar::ArrayRef<unsigned>(words), {debug, "modifier"});
  graph.setTileMapping(mask, 0);
  return popops::bitwiseXor(graph, seed.flatten(), mask, prog, {debug, "seed"});
}

}  // namespace

poplar::Tensor drawKey(poplar::Graph& graph, const poplar::Tensor* seed, std::uint32_t modifier,
                       poplar::program::Sequence& prog, const poplar::DebugContext& debug) {
  if (seed != nullptr) return modified(graph, *seed, modifier, prog, debug);
  poplar::Graph top = graph.getTopLevelGraph();
  const poplar::Tensor state = stateOf(graph);
  popops::addInPlace(top, state[1], 1U, prog, {debug, "next"});
  return state;
}

}  // namespace poplibs
