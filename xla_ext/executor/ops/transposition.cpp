#include "executor/ops/transposition.hpp"

#include <numeric>
#include <poputil/VertexTemplates.hpp>
#include <tuple>

#include "executor/ops/compute_step.hpp"

namespace snnjax::executor::ops {
namespace {

// The first dimension of an operand is the depth, or the one that stays, of which products use the intervals `free`.
Transposition transpositionOf(const ProductBlocks& blocks, bool depth_first,
                              const std::vector<poplar::Interval>& free) {
  const Product& product = blocks.product();
  const std::vector<poplar::Interval> depth = blocks.depthSteps();
  const auto& [taken, across] = depth_first ? std::tie(depth, free) : std::tie(free, depth);
  return {product.groups, taken, across.back().end(), blocks.tiles()};
}

}  // namespace

Transposition::Transposition(std::size_t groups, const std::vector<poplar::Interval>& taken, std::size_t columns,
                             std::size_t tiles)
    : groups_(groups), columns_(columns), tiles_(tiles) {
  constexpr std::size_t kLeast = 8;  // elements of a message: for fewer it costs more than they do
  const std::size_t of_tiles = std::max<std::size_t>(1, tiles / (groups * taken.size()));
  width_ = std::max(std::min(kLeast, columns), ceilDivide(columns, of_tiles));
  const std::size_t parts = groups * taken.size() * ceilDivide(columns, width_);
  for (const poplar::Interval& rows : taken) {
    const std::size_t pieces = std::clamp<std::size_t>(tiles / parts, 1, ceilDivide(rows.size(), kLeast));
    for (std::size_t i = 0; i < pieces; ++i) {
      rows_.emplace_back(rows.begin() + i * rows.size() / pieces, rows.begin() + (i + 1) * rows.size() / pieces);
    }
  }
}

std::vector<std::size_t> Transposition::counts() const {
  std::vector<std::size_t> counts(tiles_, 0);
  forEach([&](std::size_t tile, std::size_t, const poplar::Interval& rows, const poplar::Interval& columns) {
    counts[tile] += rows.size() * columns.size();
  });
  return counts;
}

poplar::Tensor Transposition::joined(const std::vector<poplar::Tensor>& made) const {
  std::vector<poplar::Tensor> of_groups;
  for (auto next = made.begin(); next != made.end();) {
    std::vector<poplar::Tensor> of_columns;
    for (std::size_t column = 0; column < columns_; column += width_) {
      const auto after = next + std::ssize(rows_);
      of_columns.push_back(poplar::concat(std::vector(next, after), 1));
      next = after;
    }
    of_groups.push_back(poplar::concat(of_columns).expand({0}));
  }
  return poplar::concat(of_groups);
}

Transposition transpositionOfLhs(const ProductBlocks& blocks) {
  return transpositionOf(blocks, blocks.product().lhsDepthFirst(), blocks.allRows());
}
Transposition transpositionOfRhs(const ProductBlocks& blocks) {
  return transpositionOf(blocks, blocks.product().rhsDepthFirst(), blocks.allColumns());
}

poplar::Tensor transposed(Lowering& lowering, const Transposition& transposition, const poplar::Tensor& matrices) {
  const std::vector<std::size_t> counts = transposition.counts();
  std::vector<std::size_t> next(counts.size() + 1, 0);
  std::partial_sum(counts.begin(), counts.end(), next.begin() + 1);
  const poplar::Tensor all = lowering.makeScratch(matrices.elementType(), counts);
  std::vector<poplar::Tensor> made;
  ComputeStep step(lowering, "transpose");
  transposition.forEach(
      [&](std::size_t tile, std::size_t group, const poplar::Interval& rows, const poplar::Interval& columns) {
        const poplar::Tensor part = matrices[group].slice(rows, 0).slice(columns, 1);
        const poplar::Tensor to = all.slice(next[tile], next[tile] + part.numElements());
        next[tile] += part.numElements();
        step.add(poputil::templateVertex("snnjax::Transpose", bitsOf(part.elementType())), tile,
                 {{"in", asBits(part).flatten()},
                  {"out", asBits(to)},
                  {"rows", asUnsigned(part.dim(0))},
                  {"columns", asUnsigned(part.dim(1))}});
        made.push_back(to.reshape({part.dim(1), part.dim(0)}));
      });
  step.execute();
  return transposition.joined(made);
}

}  // namespace snnjax::executor::ops
