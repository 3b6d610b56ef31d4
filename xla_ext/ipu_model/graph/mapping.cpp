// Poplar's Graph: which tile holds which elements; virtual graphs.
#include <algorithm>
#include <numeric>
#include <poplar/Graph.hpp>

#include "graph/graph_data.hpp"

namespace poplar {
namespace {

using ipu_model::kNoTile;
using ipu_model::Run;
using ipu_model::Variable;
using ipu_model::viewOf;

void checkTile(unsigned tile, const Target& target) {
  if (tile < target.getNumTiles()) return;
  throw invalid_tile_mapping("setTileMapping: `tile` must be below " + std::to_string(target.getNumTiles()) + ", got " +
                             std::to_string(tile) + ". The graph's target has that many tiles.");
}

// Maps elements begin to end of the runs, counted along them.
void mapRuns(std::vector<Variable>& variables, const Run& run, unsigned tile) {
  ipu_model::TileMap& tiles = variables[run.variable].tiles;
  if (run.contiguous()) {
    tiles.set(run.begin, run.begin + run.count, tile);
  } else {
    for (std::size_t i = 0; i < run.count; ++i) tiles.set(run.at(i), run.at(i) + 1, tile);
  }
}

void addInterval(std::vector<Interval>& intervals, std::size_t begin, std::size_t end) {
  if (!intervals.empty() && intervals.back().end() == begin) {
    intervals.back() = {intervals.back().begin(), end};
  } else {
    intervals.emplace_back(begin, end);
  }
}

}  // namespace

void Graph::setTileMapping(const Tensor& tensor, unsigned tile) {
  checkTile(tile, target_);
  const unsigned physical = physicalTile(tile);
  for (const Run& run : viewOf(tensor).runs()) mapRuns(data_->variables, run, physical);
}

void Graph::setTileMapping(const Tensor& tensor, const TileToTensorMapping& mapping) {
  const Tensor flat = tensor.flatten();
  for (std::size_t tile = 0; tile < mapping.size(); ++tile) {
    for (const Interval& interval : mapping[tile]) {
      setTileMapping(flat.slice(interval), static_cast<unsigned>(tile));
    }
  }
}

Graph::TileToTensorMapping Graph::getTileMapping(const Tensor& tensor, bool* isComplete) const {
  TileToTensorMapping mapping(target_.getNumTiles());
  std::vector<unsigned> own(data_->target.getNumTiles(), kNoTile);  // this graph's number of each physical tile
  for (unsigned tile = 0; tile < mapping.size(); ++tile) own[physicalTile(tile)] = tile;
  bool complete = true;
  std::size_t at = 0;
  for (const Run& run : viewOf(tensor).runs()) {
    const ipu_model::TileMap& tiles = data_->variables[run.variable].tiles;
    const std::size_t length = run.contiguous() ? run.count : 1;
    for (std::size_t done = 0; done < run.count; done += length, at += length) {
      const std::size_t first = run.at(done);
      tiles.forEach(first, first + length, [&](std::size_t begin, std::size_t end, unsigned physical) {
        const unsigned tile = physical == kNoTile ? kNoTile : own[physical];
        complete = complete && tile != kNoTile;
        if (tile != kNoTile) addInterval(mapping[tile], at + begin - first, at + end - first);
      });
    }
  }
  if (isComplete != nullptr) *isComplete = complete;
  return mapping;
}

Graph::TileToTensorMapping Graph::getTileMapping(const Tensor& tensor, bool requireComplete) const {
  bool complete = true;
  TileToTensorMapping mapping = getTileMapping(tensor, &complete);
  if (requireComplete && !complete) {
    throw invalid_tile_mapping("getTileMapping: `tensor` must be mapped to tiles of this graph, got parts of " +
                               tensor.getDebugStr() + " that are not. Call setTileMapping first.");
  }
  return mapping;
}

unsigned Graph::physicalTile(unsigned tile) const { return tiles_.empty() ? tile : tiles_[tile]; }

Graph Graph::createVirtualGraph(unsigned numTilesPerIPU) {
  std::vector<unsigned> tiles;
  for (unsigned ipu = 0; ipu < target_.getNumIPUs(); ++ipu) {
    for (unsigned tile = 0; tile < numTilesPerIPU; ++tile) tiles.push_back(ipu * target_.getTilesPerIPU() + tile);
  }
  return createVirtualGraph(tiles);
}

Graph Graph::createVirtualGraph(unsigned lowerTile, unsigned upperTile) {
  std::vector<unsigned> tiles(upperTile > lowerTile ? upperTile - lowerTile : 0);
  std::iota(tiles.begin(), tiles.end(), lowerTile);
  return createVirtualGraph(tiles);
}

Graph Graph::createVirtualGraph(const std::vector<unsigned>& perIPUTiles) {
  const unsigned per_ipu = data_->target.getTilesPerIPU();
  std::vector<unsigned> tiles;
  std::vector<unsigned> of_ipu(data_->target.getNumIPUs(), 0);
  for (const unsigned tile : perIPUTiles) {
    checkTile(tile, target_);
    tiles.push_back(physicalTile(tile));
    ++of_ipu[tiles.back() / per_ipu];
  }
  // A target has as many tiles on each of its IPUs; a set of another form is taken for one IPU of so many tiles.
  const auto used =
      static_cast<unsigned>(std::count_if(of_ipu.begin(), of_ipu.end(), [](unsigned n) { return n > 0; }));
  const unsigned most = *std::max_element(of_ipu.begin(), of_ipu.end());
  const auto count = static_cast<unsigned>(tiles.size());
  const bool even = used > 0 && most * used == count;
  Target target = target_.createVirtualTarget(even ? used : 1, even ? most : count);
  return Graph(data_, std::move(target), std::move(tiles));
}

Graph Graph::getTopLevelGraph() { return Graph(data_, data_->target, {}); }

}  // namespace poplar
