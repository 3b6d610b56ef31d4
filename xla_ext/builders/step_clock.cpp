#include "step_clock.hpp"

#include <cstdint>
#include <limits>

#include "vertices.hpp"

namespace snnjax::builders {

StepClock::StepClock(poplar::Graph& graph, const LoopSets& sets, const std::string& name)
    : graph_(&graph), sets_(sets) {
  const unsigned tiles = graph.getTarget().getNumTiles();
  counters_ = graph.addVariable(poplar::UNSIGNED_INT, {2, tiles}, name);
  // The counter of the second set is advanced in the first one, that is before it is read: it starts at -1.
  std::vector<std::uint32_t> values(2 * std::size_t{tiles}, 0);
  for (unsigned tile = 0; tile < tiles; ++tile) values[tiles + tile] = std::numeric_limits<std::uint32_t>::max();
  start_ =
      graph.addConstant(poplar::UNSIGNED_INT, {2, tiles}, poplar::ArrayRef<std::uint32_t>(values), name + "/start");
  for (unsigned tile = 0; tile < tiles; ++tile) {
    for (const poplar::Tensor& each : {counters_, start_}) {
      graph.setTileMapping(each[0][tile], tile);
      graph.setTileMapping(each[1][tile], tile);
    }
  }
  used_[0].resize(tiles);
  used_[1].resize(tiles);
}

poplar::Tensor StepClock::at(unsigned tile, unsigned set) {
  const poplar::Tensor counter = counters_[set][tile];
  if (!used_[set][tile]) {
    used_[set][tile] = true;
    addVertex(*graph_, sets_[1 - set], "snnjax::AddOne", tile, {{"iteration", counter}}, {});
  }
  return counter;
}

poplar::program::Program StepClock::reset() const { return poplar::program::Copy(start_, counters_); }

}  // namespace snnjax::builders
