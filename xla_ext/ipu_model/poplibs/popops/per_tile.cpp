#include "poplibs/popops/per_tile.hpp"

#include <algorithm>
#include <numeric>
#include <poputil/TileMapping.hpp>

namespace poplibs {

std::size_t TilePart::numElements() const {
  return std::accumulate(regions.begin(), regions.end(), std::size_t{0},
                         [](std::size_t sum, const poplar::Interval& region) { return sum + region.size(); });
}

std::vector<TilePart> partsByTile(const Mapping& mapping) {
  std::vector<TilePart> parts;
  for (unsigned tile = 0; tile < mapping.size(); ++tile) {
    TilePart part{tile, mapping[tile]};
    if (part.numElements() > 0) parts.push_back(std::move(part));
  }
  return parts;
}

std::vector<poplar::Tensor> rowsOf(const poplar::Tensor& t, const std::vector<TilePart>& parts) {
  std::vector<Regions> regions;
  for (const TilePart& part : parts) regions.push_back(part.regions);
  return t.flatten().slices(regions);
}

bool isMapped(const poplar::Graph& graph, const poplar::Tensor& t) {
  bool complete = true;
  graph.getTileMapping(t, &complete);
  return complete;
}

unsigned numTilesUsed(const Mapping& mapping) {
  return static_cast<unsigned>(
      std::count_if(mapping.begin(), mapping.end(), [](const Regions& regions) { return !regions.empty(); }));
}

poplar::Tensor cloneOnTiles(poplar::Graph& graph, const poplar::Type& type, const poplar::Tensor& like,
                            const poplar::DebugContext& debug) {
  poplar::Tensor copy = graph.addVariable(type, like.shape(), debug);
  bool complete = true;
  const Mapping mapping = graph.getTileMapping(like, &complete);
  if (complete) {
    graph.setTileMapping(copy, mapping);
  } else {
    poputil::mapTensorLinearly(graph, copy);
  }
  return copy;
}

poplar::Tensor constants(poplar::Graph& graph, const poplar::Type& type, std::size_t count, double value,
                         const poplar::DebugContext& debug) {
  if (type == poplar::FLOAT || type == poplar::HALF) {
    return graph.addConstant(type, {count}, value, debug);
  }
  return graph.addConstant(type, {count}, static_cast<long long>(value), debug);
}

poplar::Tensor constantScalar(poplar::Graph& graph, const poplar::Type& type, double value,
                              const poplar::DebugContext& debug) {
  const poplar::Tensor scalar = constants(graph, type, 1, value, debug).reshape({});
  graph.setTileMapping(scalar, 0);
  return scalar;
}

std::string toString(const std::vector<std::size_t>& shape) {
  std::string text = "{";
  for (const std::size_t size : shape) text += (text.size() > 1 ? "," : "") + std::to_string(size);
  return text + "}";
}

}  // namespace poplibs
