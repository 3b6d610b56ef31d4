#include "executor/ops/product_blocks.hpp"

#include <poputil/VertexTemplates.hpp>

#include "executor/ops/compute_step.hpp"

namespace snnjax::executor::ops {

bool ProductBlocks::areThoseOf(const Blocks& layout) const {
  return product_.groups == 1 && layout.leading == 1 && layout.rows == product_.m && layout.columns == product_.n &&
         layout.row_block == plan_.m_block && layout.column_block == plan_.n_block && layout.first_tile == 0;
}

PartialSums::PartialSums(Lowering& lowering, const ProductBlocks& blocks, const poplar::Type& type)
    : lowering_(lowering), blocks_(blocks), type_(type), sums_(blocks.product().groups * blocks.plan().parts()) {
  std::vector<std::size_t> counts(lowering.layouts().tiles(), 0);
  const auto size = [&](const ProductBlock& block) {
    return blocks.rows(block.m).size() * blocks.columns(block.n).size();
  };
  blocks.forEach([&](const ProductBlock& block) { counts[block.tile] += size(block); });
  std::vector<std::size_t> next(counts.size() + 1, 0);
  for (std::size_t tile = 0; tile < counts.size(); ++tile) next[tile + 1] = next[tile] + counts[tile];
  const poplar::Tensor all = lowering.makeScratch(type, counts);
  blocks.forEach([&](const ProductBlock& block) {
    std::size_t& begin = next[block.tile];
    sums_[index(block)] = all.slice(begin, begin + size(block));
    begin += size(block);
  });
}

// Those of one part of the depth follow each other, in the memory order of their blocks.
std::size_t PartialSums::index(const ProductBlock& block) const {
  const ProductPlan& plan = blocks_.plan();
  return ((block.k * blocks_.product().groups + block.group) * plan.m_parts + block.m) * plan.n_parts + block.n;
}

// Of each part of the depth the sums in the memory order of the output's shape.
std::vector<poplar::Tensor> PartialSums::inOrder(const Shape& shape) const {
  const Product& product = blocks_.product();
  const ProductPlan& plan = blocks_.plan();
  const Layouts& layouts = lowering_.layouts();
  const std::size_t of_group = plan.m_parts * plan.n_parts;
  const Layout matrix({1, product.m, product.n, plan.m_block, plan.n_block}, of_group);
  const bool same = blocks_.areThoseOf(layouts.of(shape).blocks());
  std::vector<poplar::Tensor> results;
  auto next = sums_.begin();
  for (std::size_t k = 0; k < plan.k_parts; ++k) {
    std::vector<poplar::Tensor> groups;
    for (std::size_t group = 0; group < product.groups; ++group) {
      const auto last = next + static_cast<std::ptrdiff_t>(of_group);
      const poplar::Tensor memory = poplar::concat(std::vector<poplar::Tensor>(next, last));
      groups.push_back(same ? memory : matrix.view(memory, {product.m, product.n}).flatten());
      next = last;
    }
    results.push_back(same ? groups[0] : layouts.memoryOrder(poplar::concat(groups).reshape(shape)));
  }
  return results;
}

void PartialSums::addUp(const poplar::Tensor& out) const {
  const Layouts& layouts = lowering_.layouts();
  const std::vector<poplar::Tensor> sums = inOrder(out.shape());
  const poplar::Tensor to = layouts.memoryOrder(out);
  const std::vector<std::size_t>& cuts = layouts.cuts(out.shape());
  ComputeStep step(lowering_, "sum");
  for (std::size_t tile = 0; tile < layouts.tiles(); ++tile) {
    if (cuts[tile] == cuts[tile + 1]) continue;
    std::vector<poplar::Tensor> rows;
    for (const poplar::Tensor& sum : sums) rows.push_back(sum.slice(cuts[tile], cuts[tile + 1]));
    step.add(poputil::templateVertex("snnjax::Reduce", "snnjax::Sum", type_, out.elementType()), tile,
             {{"in", poplar::concat(rows)},
              {"out", to.slice(cuts[tile], cuts[tile + 1])},
              {"outer", 1U},
              {"rows", asUnsigned(rows.size())},
              {"inner", asUnsigned(cuts[tile + 1] - cuts[tile])}});
  }
  step.execute();
}

}  // namespace snnjax::executor::ops
