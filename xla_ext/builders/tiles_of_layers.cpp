#include "tiles_of_layers.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "../error.hpp"

namespace snnjax::builders {
namespace {

// Issue slots: what poplar_kernels/*_cycles.hpp count for LifForward, LifBackward and ListedRowsGradient together, on
// lists of 36 and 90 and two to eight columns. Of a listed row: finding it, and a pair of its columns in the forward
// sum, the dot product and the update of the weight gradient.
constexpr double kSlotsPerRow = 23;
constexpr double kSlotsPerRowAndPair = 4;
// The update of a pair of neurons, forward and backward.
constexpr double kSlotsPerPair = 220;
// Outweighs any work.
constexpr double kTooFull = 1e9;
constexpr unsigned kPair = 2;

// The next even number of columns for which a layer needs fewer tiles.
unsigned moreColumns(const LayerSize& layer, unsigned columns) {
  const unsigned tiles = ceilDivide(layer.neurons, columns);
  if (tiles <= 1) return columns;
  const unsigned fewer = ceilDivide(layer.neurons, tiles - 1);
  return std::max(columns + kPair, ceilDivide(fewer, kPair) * kPair);
}

unsigned tilesNeeded(std::span<const LayerSize> layers, std::span<const unsigned> columns) {
  unsigned sum = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) sum += ceilDivide(layers[l].neurons, columns[l]);
  return sum;
}

// The layer that can best take more columns; those whose tiles would overflow come last. layers.size() if none can.
std::size_t leastLoaded(std::span<const LayerSize> layers, std::span<const unsigned> columns,
                        const TilesAtHand& tiles) {
  std::size_t best = layers.size();
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const unsigned more = moreColumns(layers[l], columns[l]);
    const bool fits = tileBytes(layers[l], more, tiles) <= tiles.bytes;
    const double cost = stepCost(layers[l], more, tiles.batch) * (fits ? 1 : kTooFull);
    if (more > columns[l] && cost < least) {
      best = l;
      least = cost;
    }
  }
  return best;
}

void checkMemory(std::span<const LayerSize> layers, std::span<const TileRange> ranges, const TilesAtHand& tiles) {
  std::vector<std::size_t> used(tiles.count, 0);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const std::size_t bytes = tileBytes(layers[l], ranges[l].columns, tiles);
    for (unsigned tile = ranges[l].first; tile < ranges[l].first + ranges[l].count; ++tile) used[tile] += bytes;
  }
  const auto fullest = std::ranges::max_element(used);
  if (fullest == used.end() || *fullest <= tiles.bytes) return;
  throw Error(ErrorCode::kResourceExhausted,
              "lif_network: `layers` must fit into tiles of " + std::to_string(tiles.bytes) + " bytes, got " +
                  std::to_string(*fullest) + " on tile " + std::to_string(fullest - used.begin()) +
                  ". Use more tiles or IPUs, a smaller batch, or fewer steps.");
}

// Ranges one after the other; where tiles are too few, layers wrap around and share.
std::vector<TileRange> inOrder(std::span<const LayerSize> layers, std::span<const unsigned> columns, unsigned count) {
  std::vector<TileRange> ranges;
  unsigned next = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const unsigned needed = ceilDivide(layers[l].neurons, columns[l]);
    if (next + needed > count) next = 0;
    ranges.push_back({next, needed, columns[l]});
    next += needed;
  }
  return ranges;
}

}  // namespace

double stepCost(const LayerSize& layer, unsigned columns, unsigned batch) {
  const double pairs = columns / 2.0;
  return batch * (layer.listed * (kSlotsPerRow + kSlotsPerRowAndPair * pairs) + kSlotsPerPair * pairs);
}

std::size_t tileBytes(const LayerSize& layer, unsigned columns, const TilesAtHand& tiles) {
  const std::size_t weights = std::size_t{layer.inputs + 1} * columns;
  const std::size_t row = std::size_t{tiles.batch} * columns * sizeof(float);
  return weights * (tiles.weight_bytes + (tiles.arrays - 1) * sizeof(float)) +
         row * (tiles.membrane_rows + layer.second_rows);
}

std::vector<TileRange> tilesOfLayers(std::span<const LayerSize> layers, const TilesAtHand& tiles) {
  std::vector<unsigned> columns(layers.size(), kPair);
  while (tilesNeeded(layers, columns) > tiles.count) {
    const std::size_t layer = leastLoaded(layers, columns, tiles);
    if (layer == layers.size()) break;  // one tile each already: they share
    columns[layer] = moreColumns(layers[layer], columns[layer]);
  }
  std::vector<TileRange> ranges = inOrder(layers, columns, tiles.count);
  checkMemory(layers, ranges, tiles);
  return ranges;
}

}  // namespace snnjax::builders
