// Which tiles hold which layer: a contiguous range for each, all tiles of a layer with the same number of neurons.
// Pure arithmetic; no graph is needed to try a mapping.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace snnjax::builders {

constexpr unsigned ceilDivide(unsigned a, unsigned b) { return (a + b - 1) / b; }

// What determines the work and memory of a layer's neurons.
struct LayerSize {
  unsigned inputs = 0;       // rows of the weights
  unsigned neurons = 0;      // columns
  unsigned listed = 0;       // rows that a sample adds per step: the capacity of the lists that the layer reads
  unsigned second_rows = 0;  // rows [batch, columns] of second states kept
};

struct TilesAtHand {
  unsigned count = 0;
  std::size_t bytes = 0;       // of one tile
  unsigned batch = 0;          // samples that every tile works on
  unsigned membrane_rows = 1;  // rows [batch, columns] of membranes kept: num_steps + 1 for a backward pass
  unsigned arrays = 1;         // of the size of the weights: weights alone, or with their gradient
  unsigned weight_bytes = 4;   // of one weight
};

// Neuron j of a layer lies on tile first + j / columns, in column j % columns. `columns` is even, because two floats
// make one 64-bit load; the last tile of a layer may have spare columns.
struct TileRange {
  unsigned first = 0;
  unsigned count = 0;
  unsigned columns = 0;
};

// The mapping whose slowest tile is fastest: every layer starts with two columns per tile; until the layers fit, the
// layer whose tiles would then be least loaded, and have room, takes more columns. If there are more layers than tiles,
// layers share. Throws Error (resource exhausted) if some tile would need more memory than it has.
std::vector<TileRange> tilesOfLayers(std::span<const LayerSize> layers, const TilesAtHand& tiles);

// Estimated issue slots a tile spends on a time step, forward and backward, with this many columns.
double stepCost(const LayerSize& layer, unsigned columns, unsigned batch);

// Bytes of weights, membranes and gradients of a tile with this many columns.
std::size_t tileBytes(const LayerSize& layer, unsigned columns, const TilesAtHand& tiles);

}  // namespace snnjax::builders
