// Operations along one dimension: lines, each of which lies whole on one tile.
#pragma once

#include <poplar/Tensor.hpp>

#include "executor/ops/compute_step.hpp"

namespace snnjax::executor::ops {

// {lines, length}: the dimension last.
inline poplar::Tensor asLines(const poplar::Tensor& tensor, std::size_t dimension) {
  const std::size_t length = tensor.dim(asUnsigned(dimension));
  return tensor.dimRoll(asUnsigned(dimension), tensor.rank() - 1).reshape({tensor.numElements() / length, length});
}

// Lines first, ..., first + count - 1 lie on `tile`.
struct LinesOfTile {
  std::size_t tile, first, count;
};

// Spread evenly, at least so many on a tile.
inline std::vector<LinesOfTile> spreadLines(Lowering& lowering, std::size_t lines, std::size_t least) {
  const std::size_t tiles = std::min(lowering.layouts().tiles(), ceilDivide(lines, least));
  const std::size_t each = ceilDivide(lines, tiles);
  std::vector<LinesOfTile> spread;
  for (std::size_t first = 0; first < lines; first += each) {
    spread.push_back({spread.size(), first, std::min(each, lines - first)});
  }
  return spread;
}

// As many lines as a tile has workers take no longer than one.
inline std::vector<LinesOfTile> spreadLines(Lowering& lowering, std::size_t lines) {
  return spreadLines(lowering, lines, lowering.graph().getTarget().getNumWorkerContexts());
}

// Memory for `elements` of each line, flat, on the lines' tiles.
inline poplar::Tensor makeLines(Lowering& lowering, const poplar::Type& type, const std::vector<LinesOfTile>& spread,
                                std::size_t elements) {
  std::vector<std::size_t> counts(lowering.layouts().tiles(), 0);
  for (const LinesOfTile& lines : spread) counts[lines.tile] = lines.count * elements;
  return lowering.makeScratch(type, counts);
}

}  // namespace snnjax::executor::ops
