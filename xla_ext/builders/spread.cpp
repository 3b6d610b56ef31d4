#include "spread.hpp"

#include <algorithm>

namespace snnjax::builders {
namespace {

constexpr unsigned kWordBytes = 8;  // of the widest load

}  // namespace

TileRange spreadColumns(unsigned columns, const poplar::Type& type, unsigned num_tiles) {
  const unsigned unit = kWordBytes / static_cast<unsigned>(type.size());
  const unsigned each = ceilDivide(ceilDivide(columns, num_tiles), unit) * unit;
  return {.first = 0, .count = ceilDivide(columns, each), .columns = each};
}

std::vector<RowBlock> spreadRows(unsigned rows, unsigned num_tiles) {
  const unsigned each = ceilDivide(rows, num_tiles);
  std::vector<RowBlock> blocks;
  for (unsigned first = 0; first < rows; first += each) {
    blocks.push_back({static_cast<unsigned>(blocks.size()), first, std::min(first + each, rows)});
  }
  return blocks;
}

poplar::Tensor addRows(poplar::Graph& graph, const poplar::Type& type, const std::vector<RowBlock>& blocks,
                       std::size_t elements, const char* name) {
  const poplar::Tensor rows = graph.addVariable(type, {blocks.back().last, elements}, name);
  for (const RowBlock& block : blocks) graph.setTileMapping(rows.slice(block.first, block.last), block.tile);
  return rows;
}

}  // namespace snnjax::builders
