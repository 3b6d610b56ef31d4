// The tile of each element of a tensor. A mapping holds, per tile, intervals of the flattened tensor.
#pragma once

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Interval.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <vector>

namespace poputil {

// Spreads the flattened elements over the tiles in order, evenly, starting at tile `offset` and wrapping around; never
// fewer than min_elements_per_tile on a tile (so that fewer tiles are used for small tensors), whole grains only.
// Without `ascending_order` the first elements lie on the last tile.
poplar::Graph::TileToTensorMapping calcLinearTileMapping(const poplar::Graph& graph, std::vector<std::size_t> shape,
                                                         unsigned min_elements_per_tile, unsigned grain_size,
                                                         unsigned offset = 0, bool ascending_order = true);

// The same with the vector width of the element type as grain and at least 128 bytes on a tile.
poplar::Graph::TileToTensorMapping calcLinearTileMapping(const poplar::Graph& graph, const poplar::Tensor& t);

// These return the tile after the last one used, where a next tensor may start.
unsigned mapTensorLinearlyWithOffset(poplar::Graph& graph, const poplar::Tensor& t, unsigned min_elements_per_tile,
                                     unsigned grain_size, unsigned offset, bool ascending_order = true);
unsigned mapTensorLinearlyWithOffset(poplar::Graph& graph, const poplar::Tensor& t, unsigned offset,
                                     bool ascending_order = true);

void mapTensorLinearly(poplar::Graph& graph, const poplar::Tensor& t, unsigned min_elements_per_tile,
                       unsigned grain_size);
void mapTensorLinearly(poplar::Graph& graph, const poplar::Tensor& t);

// By how many elements the fullest tile exceeds an even distribution.
unsigned getTileImbalance(const poplar::Graph::TileToTensorMapping& mapping, unsigned min_elements_per_tile = 0,
                          unsigned grain_size = 1);
unsigned getTileImbalance(const poplar::Graph& graph, const poplar::Tensor& t, unsigned min_elements_per_tile = 0,
                          unsigned grain_size = 1);

// A new tensor of the same shape, each element on the tile of `destination` that corresponds to its tile.
poplar::Tensor cloneToIpu(poplar::Graph& graph, const poplar::Tensor& t, unsigned destination,
                          const poplar::DebugContext& debug = {},
                          poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);

// cloneToIpu and the copy that fills it.
poplar::Tensor copyToIpu(poplar::Graph& graph, const poplar::Tensor& t, poplar::program::Sequence& prog,
                         unsigned destination, const poplar::DebugContext& debug = {},
                         poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);

// Whether slices of dimension `dimension` of `t` lie on different tiles.
bool dimIsSplitOverTiles(const poplar::Graph& graph, const poplar::Tensor& t, unsigned dimension);

// A vector of full.dim(dimension) elements, spread over the tiles that hold `full`, to be broadcast against it.
poplar::Tensor createBroadcastOperand(poplar::Graph& graph, const poplar::Tensor& full, const poplar::Type& type,
                                      unsigned dimension, bool dither_mapping = false,
                                      const poplar::DebugContext& debug = {});

}  // namespace poputil
