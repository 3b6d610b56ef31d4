#include "executor/ops/partial_sums.hpp"

#include <algorithm>
#include <numeric>
#include <poputil/VertexTemplates.hpp>

#include "executor/ops/compute_step.hpp"

namespace snnjax::executor::ops {

std::vector<std::size_t> evenShares(const ProductPlan& plan, const std::vector<std::size_t>& cuts) {
  // Elements that fill 64 bits, of halves too; numbers of parts that take as long as another exchange.
  constexpr std::size_t kSeveral = 4, kGrain = 4, kExchange = 512;
  const std::size_t tiles = cuts.size() - 1, elements = cuts.back();
  std::size_t most = 0;
  for (std::size_t tile = 0; tile < tiles; ++tile) most = std::max(most, cuts[tile + 1] - cuts[tile]);
  const std::size_t share = std::max(kGrain, ceilDivide(ceilDivide(elements, tiles), kGrain) * kGrain);
  const bool pays = most > kSeveral * share && (most - share) * plan.k_parts > kExchange;
  if (plan.k_parts == 1 || !pays) return {};
  std::vector<std::size_t> counts(tiles, 0);
  for (std::size_t tile = 0; tile * share < elements; ++tile) {
    counts[tile] = std::min(share, elements - tile * share);
  }
  return counts;
}

PartialSums::PartialSums(Lowering& lowering, const ProductBlocks& blocks, const poplar::Type& type)
    : lowering_(lowering), blocks_(blocks), type_(type), sums_(blocks.product().groups * blocks.plan().parts()) {
  const std::vector<std::size_t> counts = blocks.counts();
  std::vector<std::size_t> next(counts.size() + 1, 0);
  for (std::size_t tile = 0; tile < counts.size(); ++tile) next[tile + 1] = next[tile] + counts[tile];
  const poplar::Tensor all = lowering.makeScratch(type, counts);
  blocks.forEach([&](const ProductBlock& block) {
    std::size_t& begin = next[block.tile];
    sums_[index(block)] = all.slice(begin, begin + blocks.elements(block));
    begin += blocks.elements(block);
  });
}

// Those of one part of the depth follow each other, in the memory order of their blocks.
std::size_t PartialSums::index(const ProductBlock& block) const {
  const ProductPlan& plan = blocks_.plan();
  return ((block.k * blocks_.product().groups + block.group) * plan.m_parts + block.m) * plan.n_parts + block.n;
}

// Of each part of the depth the sums of all blocks, one block after the other.
std::vector<poplar::Tensor> PartialSums::byPart() const {
  const auto of_part = static_cast<std::ptrdiff_t>(sums_.size() / blocks_.plan().k_parts);
  std::vector<poplar::Tensor> parts;
  for (auto next = sums_.begin(); next != sums_.end(); next += of_part) {
    parts.push_back(poplar::concat(std::vector<poplar::Tensor>(next, next + of_part)));
  }
  return parts;
}

// Blocks one after the other, in the memory order of the output's shape.
poplar::Tensor PartialSums::inOrder(const poplar::Tensor& blocks, const Shape& shape) const {
  const Product& product = blocks_.product();
  const ProductPlan& plan = blocks_.plan();
  const Layouts& layouts = lowering_.layouts();
  if (blocks_.areThoseOf(layouts.of(shape).blocks())) return blocks;
  const Layout matrix({1, product.m, product.n, plan.m_block, plan.n_block}, plan.m_parts * plan.n_parts);
  const std::size_t of_group = product.m * product.n;
  std::vector<poplar::Tensor> groups;
  for (std::size_t group = 0; group < product.groups; ++group) {
    const poplar::Tensor memory = blocks.slice(group * of_group, (group + 1) * of_group);
    groups.push_back(matrix.view(memory, {product.m, product.n}).flatten());
  }
  return layouts.memoryOrder(poplar::concat(groups).reshape(shape));
}

// Where the output lies, or on all tiles first, if few of them hold it.
void PartialSums::addUp(const poplar::Tensor& out) const {
  const Layouts& layouts = lowering_.layouts();
  const poplar::Tensor to = layouts.memoryOrder(out);
  const std::vector<std::size_t>& cuts = layouts.cuts(out.shape());
  std::vector<poplar::Tensor> parts = byPart();
  if (const std::vector<std::size_t> counts = evenShares(blocks_.plan(), cuts); !counts.empty()) {
    const poplar::Tensor sums = lowering_.makeScratch(out.elementType(), counts);
    std::vector<std::size_t> even(counts.size() + 1, 0);
    std::partial_sum(counts.begin(), counts.end(), even.begin() + 1);
    addParts(parts, sums, even);
    return copy(lowering_, inOrder(sums, out.shape()), to, "sums");
  }
  for (poplar::Tensor& part : parts) part = inOrder(part, out.shape());
  addParts(parts, to, cuts);
}

// Tile t makes elements [cuts[t], cuts[t + 1]).
void PartialSums::addParts(const std::vector<poplar::Tensor>& parts, const poplar::Tensor& to,
                           const std::vector<std::size_t>& cuts) const {
  ComputeStep step(lowering_, "sum");
  for (std::size_t tile = 0; tile + 1 < cuts.size(); ++tile) {
    if (cuts[tile] == cuts[tile + 1]) continue;
    std::vector<poplar::Tensor> of_tile;
    for (const poplar::Tensor& part : parts) of_tile.push_back(part.slice(cuts[tile], cuts[tile + 1]));
    step.add(poputil::templateVertex("snnjax::SumPartials", type_, to.elementType()), tile,
             {{"in", poplar::concat(of_tile)},
              {"out", to.slice(cuts[tile], cuts[tile + 1])},
              {"parts", asUnsigned(parts.size())},
              {"count", asUnsigned(cuts[tile + 1] - cuts[tile])}});
  }
  step.execute();
}

}  // namespace snnjax::executor::ops
