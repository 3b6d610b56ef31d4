#include <popops/Cast.hpp>
#include <poputil/VertexTemplates.hpp>
#include <poputil/exceptions.hpp>

#include "poplibs/popops/per_tile.hpp"

namespace popops {

void cast(poplar::Graph& graph, poplar::Tensor src, poplar::Tensor dst, const poplar::ComputeSet& cs) {
  if (src.shape() != dst.shape()) {
    throw poputil::poplibs_error("popops::cast: `dst` must have the shape " + poplibs::toString(src.shape()) +
                                 ", got " + poplibs::toString(dst.shape()) + ". Reshape it.");
  }
  const auto parts = poplibs::partsByTile(graph.getTileMapping(dst));
  const auto from = poplibs::rowsOf(src, parts), to = poplibs::rowsOf(dst, parts);
  const std::string codelet = poputil::templateVertex("snnjax::Cast", src.elementType(), dst.elementType());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const poplar::VertexRef vertex = graph.addVertex(cs, codelet, {{"in", from[p]}, {"out", to[p]}});
    graph.setInitialValue(vertex["count"], static_cast<unsigned>(to[p].numElements()));
    graph.setTileMapping(vertex, parts[p].tile);
  }
}

poplar::program::Program cast(poplar::Graph& graph, poplar::Tensor src, poplar::Tensor dst,
                              const poplar::DebugContext& debug) {
  const poplar::ComputeSet cs = graph.addComputeSet({debug, "cast"});
  cast(graph, src, dst, cs);
  return poplar::program::Execute(cs, debug);
}

poplar::Tensor cast(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Type& type,
                    const poplar::ComputeSet& cs, const poplar::DebugContext& debug) {
  const poplar::Tensor dst = poplibs::cloneOnTiles(graph, type, src, {debug, "cast"});
  cast(graph, src, dst, cs);
  return dst;
}

poplar::Tensor cast(poplar::Graph& graph, const poplar::Tensor& src, const poplar::Type& type,
                    poplar::program::Sequence& prog, const poplar::DebugContext& debug) {
  const poplar::ComputeSet cs = graph.addComputeSet({debug, "cast"});
  const poplar::Tensor dst = cast(graph, src, type, cs, debug);
  prog.add(poplar::program::Execute(cs, debug));
  return dst;
}

}  // namespace popops
