// One compute set of an operation: vertices are added, then it is executed.
#pragma once

#include <initializer_list>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <string>
#include <string_view>

#include "executor/lowering.hpp"

namespace snnjax::executor::ops {

class ComputeStep {
 public:
  ComputeStep(Lowering& lowering, std::string_view part)
      : lowering_(lowering), debug_(lowering.debug(part)), compute_set_(lowering.graph().addComputeSet(debug_)) {}

  // Fields are tensors, flat or scalar; states are numbers.
  poplar::VertexRef add(const std::string& codelet, std::size_t tile,
                        std::initializer_list<poplar::ConnectionDesc> fields) {
    poplar::Graph& graph = lowering_.graph();
    const poplar::VertexRef vertex = graph.addVertex(compute_set_, codelet, fields);
    graph.setTileMapping(vertex, static_cast<unsigned>(tile));
    ++vertices_;
    return vertex;
  }
  void execute() const {
    if (vertices_ > 0) lowering_.program().add(poplar::program::Execute(compute_set_, debug_));
  }

 private:
  Lowering& lowering_;
  poplar::DebugContext debug_;
  poplar::ComputeSet compute_set_;
  std::size_t vertices_ = 0;
};

// States of vertices are unsigned.
inline unsigned asUnsigned(std::size_t value) { return static_cast<unsigned>(value); }

// The unsigned integer of the same width, for data that is only moved.
inline poplar::Type bitsOf(const poplar::Type& type) {
  return type.size() == 1 ? poplar::UNSIGNED_CHAR : type.size() == 2 ? poplar::UNSIGNED_SHORT : poplar::UNSIGNED_INT;
}
inline poplar::Tensor asBits(const poplar::Tensor& tensor) { return tensor.reinterpret(bitsOf(tensor.elementType())); }

inline void copy(Lowering& lowering, const poplar::Tensor& from, const poplar::Tensor& to, std::string_view part) {
  if (from.numElements() > 0) lowering.program().add(poplar::program::Copy(from, to, false, lowering.debug(part)));
}

// ---- Operations along one dimension: lines, each whole on one tile ----

// {lines, length}: the dimension last.
inline poplar::Tensor asLines(const poplar::Tensor& tensor, std::size_t dimension) {
  const std::size_t length = tensor.dim(asUnsigned(dimension));
  return tensor.dimRoll(asUnsigned(dimension), tensor.rank() - 1).reshape({tensor.numElements() / length, length});
}

// Lines first, ..., first + count - 1 lie on `tile`.
struct LinesOfTile {
  std::size_t tile, first, count;
};

// Spread evenly, at least this many on a tile.
inline std::vector<LinesOfTile> spreadLines(Lowering& lowering, std::size_t lines, std::size_t least) {
  const std::size_t tiles = std::min(lowering.layouts().tiles(), ceilDivide(lines, least));
  const std::size_t each = ceilDivide(lines, tiles);
  std::vector<LinesOfTile> spread;
  for (std::size_t first = 0; first < lines; first += each) {
    spread.push_back({spread.size(), first, std::min(each, lines - first)});
  }
  return spread;
}

// One line per worker takes no longer than a single line.
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
