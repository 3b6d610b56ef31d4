#include "poplibs/popops/expressions.hpp"

#include <algorithm>
#include <poputil/Broadcast.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "elementwise/vertices.hpp"
#include "poplibs/popops/expression_program.hpp"
#include "poplibs/popops/per_tile.hpp"

namespace poplibs {
namespace {

using snnjax::elementwise::TiledRows;
using Operand = snnjax::elementwise::ElementwiseProgram::Operand;
using Shape = std::vector<std::size_t>;

// Of numbers alone it is that of a scalar.
Shape broadcastShape(const std::vector<poplar::Tensor>& tensors) {
  if (tensors.empty()) return {};
  poplar::Tensor shape = tensors.front();
  for (poplar::Tensor tensor : tensors) poputil::broadcastToMatch(shape, tensor);
  return shape.shape();
}

poplar::Tensor outputLike(poplar::Graph& graph, const std::vector<poplar::Tensor>& inputs, const poplar::Type& type,
                          const Shape& shape, const poplar::DebugContext& debug) {
  const poplar::Tensor* best = nullptr;
  unsigned best_tiles = 0;
  for (const poplar::Tensor& input : inputs) {
    if (input.shape() != shape || input.containsAliases() || !isMapped(graph, input)) continue;
    const unsigned tiles = numTilesUsed(graph.getTileMapping(input));
    if (tiles > best_tiles) {
      best = &input;
      best_tiles = tiles;
    }
  }
  if (best != nullptr) return cloneOnTiles(graph, type, *best, debug);
  const poplar::Tensor result = graph.addVariable(type, shape, debug);
  poputil::mapTensorLinearly(graph, result);
  return result;
}

poplar::Tensor destination(poplar::Graph& graph, const ExpressionProgram& of, const std::optional<poplar::Tensor>& out,
                           const poplar::DebugContext& debug) {
  const Shape shape = broadcastShape(of.inputs);
  if (!out) return outputLike(graph, of.inputs, of.type, shape, debug);
  const bool fits = out->shape() == shape || (of.inputs.empty() && out->numElements() > 0);
  if (!fits || !(out->elementType() == of.type)) {
    throw poputil::poplibs_error("popops::map: `out` must be " + of.type.toString() + toString(shape) + ", got " +
                                 out->elementType().toString() + toString(out->shape()) +
                                 ". Broadcast or cast the operands.");
  }
  return *out;
}

void addVertices(poplar::Graph& graph, poplar::ComputeSet set, const ExpressionProgram& of, const poplar::Tensor& out) {
  const std::vector<TilePart> parts = partsByTile(graph.getTileMapping(out));
  if (parts.empty()) return;
  std::vector<unsigned> tiles;
  for (const TilePart& part : parts) tiles.push_back(part.tile);
  TiledRows rows;
  const unsigned output = TiledRows::add(rows.out, rowsOf(out, parts));
  std::vector<Operand> operands;
  for (poplar::Tensor input : of.inputs) {
    if (input == out) {
      operands.push_back({Operand::Place::kOutput, output, 0});
    } else if (input.numElements() == 1) {
      const TiledRows::Parts one(parts.size(), input.flatten());
      operands.push_back({Operand::Place::kSingle, TiledRows::add(rows.in, one), 0});
    } else {
      poputil::broadcastToMatch(input, out.shape());
      operands.push_back({Operand::Place::kRow, TiledRows::add(rows.in, rowsOf(input, parts)), 0});
    }
  }
  snnjax::elementwise::addVertices(graph, set, tiles, rows, of.program, operands, {output});
}

}  // namespace

poplar::Tensor evaluate(poplar::Graph& graph, poplar::program::Sequence& prog, const popops::expr::Expr& expr,
                        const std::vector<poplar::Tensor>& tensors, const std::optional<poplar::Tensor>& out,
                        const poplar::DebugContext& debug) {
  const ExpressionProgram of = programOf(expr, tensors);
  const poplar::Tensor result = destination(graph, of, out, debug);
  const poplar::ComputeSet set = graph.addComputeSet({debug, "map"});
  addVertices(graph, set, of, result);
  prog.add(poplar::program::Execute(set, debug));
  return result;
}

}  // namespace poplibs
