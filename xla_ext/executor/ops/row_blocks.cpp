#include "executor/ops/row_blocks.hpp"

#include <algorithm>

namespace snnjax::executor::ops {
namespace {

poplar::Interval partOf(std::size_t part, std::size_t parts, const poplar::Interval& of) {
  return {of.begin() + part * of.size() / parts, of.begin() + (part + 1) * of.size() / parts};
}

planner::RowPlan planOf(const RowBlocks::Sizes& sizes, RowBlocks::Use use, std::size_t chunks,
                        const planner::Machine& machine) {
  const std::size_t groups = sizes.groups / chunks;  // of the smallest chunk: none has parts without elements
  const planner::RowSizes of_chunk{sizes.rows / sizes.groups * groups, sizes.columns,
                                   sizes.lookups / sizes.groups * groups, sizes.element_bytes, sizes.share};
  if (use == RowBlocks::Use::Gather) return planner::planGather(of_chunk, machine);
  return planner::planScatter(of_chunk, machine, use == RowBlocks::Use::ScatterInOrder);
}

}  // namespace

RowBlocks::RowBlocks(Lowering& lowering, const Sizes& sizes, Use use)
    : lowering_(lowering), sizes_(sizes), chunks_(std::min(sizes.groups, lowering.layouts().tiles())) {
  // The share of a tile's memory; the rest is for other values and for exchange.
  constexpr double kShare = 0.4;
  const auto bytes =
      static_cast<std::size_t>(kShare * static_cast<double>(lowering.graph().getTarget().getBytesPerTile()));
  plan_ = planOf(sizes, use, chunks_, {lowering.layouts().tiles() / chunks_, bytes});
}

std::size_t RowBlocks::mostLookups() const {
  return ceilDivide(sizes_.lookups / sizes_.groups * ceilDivide(sizes_.groups, chunks_), plan_.lookup_parts);
}

RowBlock RowBlocks::block(std::size_t tile) const {
  const std::size_t chunk = tile / plan_.parts(), in_chunk = tile % plan_.parts();
  const std::size_t first = chunk * sizes_.groups / chunks_, last = (chunk + 1) * sizes_.groups / chunks_;
  const auto ofGroups = [&](std::size_t size) {
    return poplar::Interval(first * (size / sizes_.groups), last * (size / sizes_.groups));
  };
  const std::size_t row = in_chunk % plan_.row_parts, column = in_chunk / plan_.row_parts % plan_.column_parts,
                    lookup = in_chunk / plan_.row_parts / plan_.column_parts;
  const std::size_t first_column = column * plan_.column_block;
  return {partOf(row, plan_.row_parts, ofGroups(sizes_.rows)),
          partOf(lookup, plan_.lookup_parts, ofGroups(sizes_.lookups)),
          {first_column, std::min(sizes_.columns, first_column + plan_.column_block)},
          row,
          tile};
}

void RowBlocks::forEach(const std::function<void(const RowBlock&)>& body) const {
  for (std::size_t tile = 0; tile < chunks_ * plan_.parts(); ++tile) body(block(tile));
}

std::vector<poplar::Tensor> RowBlocks::makeOnTiles(const poplar::Type& type,
                                                   const std::function<std::size_t(const RowBlock&)>& sizeOf) const {
  std::vector<std::size_t> counts(lowering_.layouts().tiles(), 0);
  forEach([&](const RowBlock& block) { counts[block.tile] = sizeOf(block); });
  const poplar::Tensor all = lowering_.makeScratch(type, counts);
  std::vector<poplar::Tensor> pieces;
  std::size_t begin = 0;
  for (const std::size_t count : counts) {
    pieces.push_back(all.slice(begin, begin + count));
    begin += count;
  }
  return pieces;
}

std::vector<poplar::Tensor> RowBlocks::asTables(const std::vector<poplar::Tensor>& by_tile) const {
  std::vector<std::vector<poplar::Tensor>> rows_of_tables(plan_.lookup_parts);
  for (std::size_t chunk = 0; chunk < chunks_; ++chunk) {
    for (std::size_t lookup = 0; lookup < plan_.lookup_parts; ++lookup) {
      const std::size_t first = (chunk * plan_.lookup_parts + lookup) * plan_.column_parts * plan_.row_parts;
      for (std::size_t row = 0; row < plan_.row_parts; ++row) {
        std::vector<poplar::Tensor> columns;
        for (std::size_t column = 0; column < plan_.column_parts; ++column) {
          const RowBlock of = block(first + column * plan_.row_parts + row);
          columns.push_back(by_tile[of.tile].reshape({of.rows.size(), of.columns.size()}));
        }
        rows_of_tables[lookup].push_back(poplar::concat(columns, 1).flatten());
      }
    }
  }
  std::vector<poplar::Tensor> tables;
  for (const auto& rows : rows_of_tables) tables.push_back(poplar::concat(rows));
  return tables;
}

}  // namespace snnjax::executor::ops
