#include "builders/network/counter.hpp"

#include "builders/vertices.hpp"

namespace snnjax::builders {

Counter::Counter(Graph& graph, unsigned num_tiles, unsigned start, const std::string& name)
    : counters_(graph.addVariable(UNSIGNED_INT, {num_tiles}, name)),
      start_(graph.addConstant(UNSIGNED_INT, {num_tiles}, start, name + "/start")) {
  for (unsigned tile = 0; tile < num_tiles; ++tile) {
    graph.setTileMapping(counters_[tile], tile);
    graph.setTileMapping(start_[tile], tile);
  }
  graph.setInitialValue(counters_, start);
}

void Counter::advance(Graph& graph, ComputeSet set, unsigned first, unsigned count, unsigned by) const {
  for (unsigned tile = first; tile < first + count; ++tile) {
    addVertex(graph, set, "snnjax::Advance", tile, {{"counter", counters_[tile]}}, {{"by", by}});
  }
}

Program Counter::reset() const { return Copy(start_, counters_); }

}  // namespace snnjax::builders
