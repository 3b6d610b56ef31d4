#include "poplibs/popops/sorted_rows.hpp"

#include <poputil/TileMapping.hpp>
#include <poputil/VertexTemplates.hpp>

#include "poplibs/popops/per_tile.hpp"

namespace poplibs {

poplar::Tensor addRows(poplar::Graph& graph, const poplar::Type& type, std::size_t rows, std::size_t length,
                       const poplar::DebugContext& debug) {
  const poplar::Tensor t = graph.addVariable(type, {rows, length}, debug);
  const auto row = static_cast<unsigned>(length);
  if (t.numElements() > 0) poputil::mapTensorLinearly(graph, t, row, row);
  return t;
}

void sortRows(poplar::Graph& graph, const poplar::Tensor& keys, const poplar::Tensor& values, bool descending,
              poplar::program::Sequence& prog, const poplar::DebugContext& debug) {
  const poplar::ComputeSet cs = graph.addComputeSet({debug, "sort"});
  const poplar::Type type = keys.elementType();
  const std::string codelet = poputil::templateVertex("snnjax::SortRowsWithValues", type, values.elementType());
  const poplar::Tensor scratch = cloneOnTiles(graph, type, keys, {debug, "scratch"});
  const auto length = static_cast<unsigned>(keys.dim(1));
  const auto parts = partsByTile(graph.getTileMapping(keys));
  const auto key_rows = rowsOf(keys, parts), scratch_rows = rowsOf(scratch, parts);
  const auto value_rows = rowsOf(values, parts);
  const auto scratch_value_rows = rowsOf(cloneOnTiles(graph, values.elementType(), keys, {debug, "scratch"}), parts);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const poplar::VertexRef vertex = graph.addVertex(cs, codelet);
    graph.connect(vertex["keys"], key_rows[p]);
    graph.connect(vertex["scratch"], scratch_rows[p]);
    graph.connect(vertex["values"], value_rows[p]);
    graph.connect(vertex["scratch_values"], scratch_value_rows[p]);
    graph.setInitialValue(vertex["rows"], static_cast<unsigned>(key_rows[p].numElements()) / length);
    graph.setInitialValue(vertex["length"], length);
    graph.setInitialValue(vertex["sorted"], 1U);
    graph.setInitialValue(vertex["descending"], descending);
    graph.setTileMapping(vertex, parts[p].tile);
  }
  prog.add(poplar::program::Execute(cs, debug));
}

void numberRows(poplar::Graph& graph, const poplar::Tensor& rows, poplar::program::Sequence& prog,
                const poplar::DebugContext& debug) {
  const poplar::ComputeSet cs = graph.addComputeSet({debug, "indices"});
  const std::size_t length = rows.dim(1);
  for (const TilePart& part : partsByTile(graph.getTileMapping(rows))) {
    for (const poplar::Interval& region : part.regions) {
      for (std::size_t begin = region.begin(); begin < region.end(); begin += length) {
        const poplar::VertexRef vertex = graph.addVertex(cs, "snnjax::Iota");
        graph.connect(vertex["out"], rows[begin / length]);
        graph.setInitialValue(vertex["count"], static_cast<unsigned>(length));
        graph.setInitialValue(vertex["first"], 0U);
        graph.setInitialValue(vertex["step"], 1U);
        graph.setTileMapping(vertex, part.tile);
      }
    }
  }
  prog.add(poplar::program::Execute(cs, debug));
}

}  // namespace poplibs
