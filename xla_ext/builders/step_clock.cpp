#include "step_clock.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "vertices.hpp"

namespace snnjax::builders {

StepClock::StepClock(poplar::Graph& graph, const LoopSets& sets, const std::string& name)
    : graph_(&graph), sets_(sets) {
  const unsigned tiles = graph.getTarget().getNumTiles();
  const std::size_t count = sets.size();
  counters_ = graph.addVariable(poplar::UNSIGNED_INT, {count, tiles}, name);
  // The counter of the first set is advanced at the end of an iteration, the others before they are read: these start
  // at -1.
  std::vector<std::uint32_t> values(count * tiles, std::numeric_limits<std::uint32_t>::max());
  std::fill_n(values.begin(), tiles, 0U);
  start_ =
      graph.addConstant(poplar::UNSIGNED_INT, {count, tiles}, poplar::ArrayRef<std::uint32_t>(values), name + "/start");
  for (unsigned tile = 0; tile < tiles; ++tile) {
    for (const poplar::Tensor& each : {counters_, start_}) {
      for (std::size_t set = 0; set < count; ++set) graph.setTileMapping(each[set][tile], tile);
    }
  }
  used_.assign(count, std::vector<bool>(tiles));
}

poplar::Tensor StepClock::at(unsigned tile, unsigned set) {
  const poplar::Tensor counter = counters_[set][tile];
  if (!used_[set][tile]) {
    used_[set][tile] = true;
    const std::size_t before = (set + sets_.size() - 1) % sets_.size();
    addVertex(*graph_, sets_[before], "snnjax::AddOne", tile, {{"iteration", counter}}, {});
  }
  return counter;
}

poplar::program::Program StepClock::reset() const { return poplar::program::Copy(start_, counters_); }

}  // namespace snnjax::builders
