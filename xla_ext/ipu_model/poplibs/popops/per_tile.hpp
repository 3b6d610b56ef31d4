// Shared by all operations: tensors divided by tile, and mappings of new tensors.
#pragma once

#include <poplar/Graph.hpp>
#include <poplar/Interval.hpp>
#include <poplar/Tensor.hpp>
#include <string>
#include <vector>

namespace poplibs {

using Regions = std::vector<poplar::Interval>;
using Mapping = poplar::Graph::TileToTensorMapping;

// Elements of a flattened tensor that lie on one tile.
struct TilePart {
  unsigned tile;
  Regions regions;

  std::size_t numElements() const;
};

std::vector<TilePart> partsByTile(const Mapping& mapping);

// For each part, its elements of the flattened tensor, in one row.
std::vector<poplar::Tensor> rowsOf(const poplar::Tensor& t, const std::vector<TilePart>& parts);

// Whether every element has a tile.
bool isMapped(const poplar::Graph& graph, const poplar::Tensor& t);

unsigned numTilesUsed(const Mapping& mapping);

// A new tensor with the shape of `like`, each element on the same tile.
poplar::Tensor cloneOnTiles(poplar::Graph& graph, const poplar::Type& type, const poplar::Tensor& like,
                            const poplar::DebugContext& debug);

// A constant, on tile 0.
poplar::Tensor constantScalar(poplar::Graph& graph, const poplar::Type& type, double value,
                              const poplar::DebugContext& debug);

// `count` times the same constant, converted to the type.
poplar::Tensor constants(poplar::Graph& graph, const poplar::Type& type, std::size_t count, double value,
                         const poplar::DebugContext& debug);

std::string toString(const std::vector<std::size_t>& shape);

}  // namespace poplibs
