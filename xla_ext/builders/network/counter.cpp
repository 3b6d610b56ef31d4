#include "builders/network/counter.hpp"

#include "builders/vertices.hpp"

namespace snnjax::builders {

Counter::Counter(poplar::Graph& graph, unsigned num_tiles, unsigned start, const std::string& name)
    : counters_(graph.addVariable(poplar::UNSIGNED_INT, {num_tiles}, name)),
      start_(graph.addConstant(poplar::UNSIGNED_INT, {num_tiles}, start, name + "/start")) {
  for (unsigned tile = 0; tile < num_tiles; ++tile) {
    graph.setTileMapping(counters_[tile], tile);
    graph.setTileMapping(start_[tile], tile);
  }
  graph.setInitialValue(counters_, start);
}

void Counter::advance(poplar::Graph& graph, poplar::ComputeSet set, unsigned first, unsigned count, unsigned by) const {
  for (unsigned tile = first; tile < first + count; ++tile) {
    addVertex(graph, set, "snnjax::Advance", tile, {{"counter", counters_[tile]}}, {{"by", by}});
  }
}

poplar::program::Program Counter::reset() const { return poplar::program::Copy(start_, counters_); }

}  // namespace snnjax::builders
