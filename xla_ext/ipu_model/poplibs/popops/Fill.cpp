#include <popops/Fill.hpp>
#include <popops/Zero.hpp>
#include <poputil/VertexTemplates.hpp>

#include "poplibs/popops/per_tile.hpp"

namespace popops {

void detail::fill(poplar::Graph& graph, const poplar::Tensor& t, const poplibs::Mapping& mapping, poplar::ComputeSet cs,
                  double value) {
  const poplar::Type type = t.elementType();
  const auto parts = poplibs::partsByTile(mapping);
  const auto rows = poplibs::rowsOf(t, parts);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const poplar::VertexRef vertex = graph.addVertex(cs, poputil::templateVertex("snnjax::Fill", type));
    graph.connect(vertex["out"], rows[p]);
    graph.setInitialValue(vertex["count"], static_cast<unsigned>(rows[p].numElements()));
    if (type == poplar::FLOAT || type == poplar::HALF) {
      graph.setInitialValue(vertex["value"], value);
    } else {
      graph.setInitialValue(vertex["value"], static_cast<long long>(value));
    }
    graph.setTileMapping(vertex, parts[p].tile);
  }
}

void zero(poplar::Graph& graph, const poplar::Tensor& t, const poplibs::Mapping& mapping, poplar::ComputeSet cs) {
  fill(graph, t, mapping, cs, 0);
}

void zero(poplar::Graph& graph, poplar::Tensor t, const poplibs::Regions& tile_regions, unsigned tile,
          poplar::ComputeSet cs) {
  poplibs::Mapping mapping(tile + 1);
  mapping[tile] = tile_regions;
  fill(graph, t, mapping, cs, 0);
}

void zero(poplar::Graph& graph, const poplar::Tensor& t, poplar::program::Sequence& prog,
          const poplar::DebugContext& debug) {
  fill(graph, t, prog, 0, {debug, "zero"});
}

}  // namespace popops
