// Linear mappings, imbalance, tensors on another IPU.
#include <algorithm>
#include <poputil/TileMapping.hpp>
#include <poputil/Util.hpp>
#include <poputil/exceptions.hpp>

namespace poputil {
namespace {

using Mapping = poplar::Graph::TileToTensorMapping;

// Less on a tile costs more in exchange than it saves in compute.
constexpr unsigned kLeastBytesPerTile = 128;

struct Grains {
  unsigned min_elements;
  unsigned size;
};

Grains grainsFor(const poplar::Graph& graph, const poplar::Type& type) {
  const auto& target = graph.getTarget();
  const unsigned bytes = std::max(1U, static_cast<unsigned>(target.getTypeSize(type)));
  return {(kLeastBytesPerTile + bytes - 1) / bytes, std::max(1U, static_cast<unsigned>(target.getVectorWidth(type)))};
}

std::size_t product(const std::vector<std::size_t>& shape) {
  std::size_t elements = 1;
  for (const auto size : shape) elements *= size;
  return elements;
}

}  // namespace

Mapping calcLinearTileMapping(const poplar::Graph& graph, std::vector<std::size_t> shape,
                              unsigned min_elements_per_tile, unsigned grain_size, unsigned offset,
                              bool ascending_order) {
  const unsigned tiles = graph.getTarget().getNumTiles();
  const auto parts = splitRegions(Regions{{0, product(shape)}}, grain_size, tiles, min_elements_per_tile);
  Mapping mapping(tiles);
  for (unsigned part = 0; part < parts.size(); ++part) {
    const unsigned tile = (offset + part) % tiles;
    mapping[ascending_order ? tile : tiles - 1 - tile] = parts[part];
  }
  return mapping;
}

Mapping calcLinearTileMapping(const poplar::Graph& graph, const poplar::Tensor& t) {
  const Grains grains = grainsFor(graph, t.elementType());
  return calcLinearTileMapping(graph, t.shape(), grains.min_elements, grains.size);
}

unsigned mapTensorLinearlyWithOffset(poplar::Graph& graph, const poplar::Tensor& t, unsigned min_elements_per_tile,
                                     unsigned grain_size, unsigned offset, bool ascending_order) {
  const Mapping mapping =
      calcLinearTileMapping(graph, t.shape(), min_elements_per_tile, grain_size, offset, ascending_order);
  graph.setTileMapping(t, mapping);
  const auto used = std::count_if(mapping.begin(), mapping.end(), [](const auto& tile) { return !tile.empty(); });
  return (offset + static_cast<unsigned>(used)) % static_cast<unsigned>(mapping.size());
}

unsigned mapTensorLinearlyWithOffset(poplar::Graph& graph, const poplar::Tensor& t, unsigned offset,
                                     bool ascending_order) {
  const Grains grains = grainsFor(graph, t.elementType());
  return mapTensorLinearlyWithOffset(graph, t, grains.min_elements, grains.size, offset, ascending_order);
}

void mapTensorLinearly(poplar::Graph& graph, const poplar::Tensor& t, unsigned min_elements_per_tile,
                       unsigned grain_size) {
  mapTensorLinearlyWithOffset(graph, t, min_elements_per_tile, grain_size, 0);
}

void mapTensorLinearly(poplar::Graph& graph, const poplar::Tensor& t) { mapTensorLinearlyWithOffset(graph, t, 0); }

unsigned getTileImbalance(const Mapping& mapping, unsigned min_elements_per_tile, unsigned grain_size) {
  std::size_t most = 0, total = 0;
  for (const auto& regions : mapping) {
    const std::size_t elements = intervalSequenceNumElements({regions});
    most = std::max(most, elements);
    total += elements;
  }
  if (mapping.empty()) return 0;
  const std::size_t grain = std::max(1U, grain_size);
  const std::size_t even = (total + mapping.size() - 1) / mapping.size();
  const std::size_t expected = std::max<std::size_t>(min_elements_per_tile, (even + grain - 1) / grain * grain);
  return most > expected ? static_cast<unsigned>(most - expected) : 0;
}

unsigned getTileImbalance(const poplar::Graph& graph, const poplar::Tensor& t, unsigned min_elements_per_tile,
                          unsigned grain_size) {
  return getTileImbalance(graph.getTileMapping(t), min_elements_per_tile, grain_size);
}

poplar::Tensor cloneToIpu(poplar::Graph& graph, const poplar::Tensor& t, unsigned destination,
                          const poplar::DebugContext& debug, poplar::TensorCloneMethod method) {
  const auto& target = graph.getTarget();
  if (destination >= target.getNumIPUs()) {
    throw poplibs_error("cloneToIpu: `destination` must be below the number of IPUs (" +
                        std::to_string(target.getNumIPUs()) + "), got " + std::to_string(destination) +
                        ". Create the device with more IPUs.");
  }
  const unsigned tiles = target.getTilesPerIPU();
  poplar::Tensor copy = graph.clone(t, debug, method);
  const Mapping from = graph.getTileMapping(t);
  Mapping to(target.getNumTiles());
  for (unsigned tile = 0; tile < from.size(); ++tile) {
    auto& regions = to[tile % tiles + destination * tiles];
    regions.insert(regions.end(), from[tile].begin(), from[tile].end());
  }
  mergeAdjacentRegions(to);
  graph.setTileMapping(copy, to);
  return copy;
}

poplar::Tensor copyToIpu(poplar::Graph& graph, const poplar::Tensor& t, poplar::program::Sequence& prog,
                         unsigned destination, const poplar::DebugContext& debug, poplar::TensorCloneMethod method) {
  poplar::Tensor copy = cloneToIpu(graph, t, destination, debug, method);
  prog.add(poplar::program::Copy(t, copy, false, debug));
  return copy;
}

bool dimIsSplitOverTiles(const poplar::Graph& graph, const poplar::Tensor& t, unsigned dimension) {
  if (t.dim(dimension) < 2) return false;
  const Mapping first = graph.getTileMapping(t.slice(0, 1, dimension));
  for (std::size_t i = 1; i < t.dim(dimension); ++i) {
    if (graph.getTileMapping(t.slice(i, i + 1, dimension)) != first) return true;
  }
  return false;
}

poplar::Tensor createBroadcastOperand(poplar::Graph& graph, const poplar::Tensor& full, const poplar::Type& type,
                                      unsigned dimension, bool dither_mapping, const poplar::DebugContext& debug) {
  const Mapping mapping = graph.getTileMapping(full);
  std::vector<unsigned> used;
  for (unsigned tile = 0; tile < mapping.size(); ++tile) {
    if (!mapping[tile].empty()) used.push_back(tile);
  }
  if (used.empty()) used.push_back(0);
  poplar::Tensor operand = graph.addVariable(type, {full.dim(dimension)}, debug);
  const unsigned grain = std::max(1U, static_cast<unsigned>(graph.getTarget().getVectorWidth(type)));
  const auto parts = splitRegions(Regions{{0, operand.numElements()}}, grain, static_cast<unsigned>(used.size()));
  // Dithering keeps many small operands from all starting at the first tile.
  const std::size_t start = dither_mapping ? operand.numElements() % used.size() : 0;
  Mapping spread(mapping.size());
  for (std::size_t part = 0; part < parts.size(); ++part) spread[used[(start + part) % used.size()]] = parts[part];
  graph.setTileMapping(operand, spread);
  return operand;
}

}  // namespace poputil
