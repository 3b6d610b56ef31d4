#include "poplibs/popops/slice_columns.hpp"

#include <map>

namespace poplibs {

poplar::Tensor asTable(const poplar::Tensor& t, std::size_t dim) {
  const std::size_t rows = t.dim(static_cast<unsigned>(dim));
  const std::size_t columns = rows == 0 ? 0 : t.numElements() / rows;
  return t.dimRoll(static_cast<unsigned>(dim), 0).reshape({rows, columns});
}

poplar::Tensor fromTable(const poplar::Tensor& table, const std::vector<std::size_t>& shape, std::size_t dim) {
  std::vector<std::size_t> rolled = shape;
  rolled.erase(rolled.begin() + static_cast<std::ptrdiff_t>(dim));
  rolled.insert(rolled.begin(), shape[dim]);
  return table.reshape(rolled).dimRoll(0, static_cast<unsigned>(dim));
}

std::vector<TilePart> columnsByTile(const poplar::Graph& graph, const poplar::Tensor& table) {
  return partsByTile(graph.getTileMapping(table[0]));
}

poplar::Tensor addTable(poplar::Graph& graph, const poplar::Type& type, std::size_t rows,
                        const std::vector<TilePart>& columns, const poplar::DebugContext& debug) {
  std::map<std::size_t, poplar::Tensor> pieces;  // by their first column
  for (const TilePart& part : columns) {
    const poplar::Tensor block = graph.addVariable(type, {rows, part.numElements()}, debug);
    graph.setTileMapping(block, part.tile);
    std::size_t begin = 0;
    for (const poplar::Interval& region : part.regions) {
      pieces.emplace(region.begin(), block.slice(begin, begin + region.size(), 1));
      begin += region.size();
    }
  }
  std::vector<poplar::Tensor> in_order;
  for (const auto& [begin, piece] : pieces) in_order.push_back(piece);
  return poplar::concat(in_order, 1);
}

poplar::Tensor columnsOf(const poplar::Tensor& table, const TilePart& columns) {
  return poplar::concat(table.slices(columns.regions, 1), 1).flatten();
}

}  // namespace poplibs
