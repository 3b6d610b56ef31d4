// Products of matrices, as the planner divides them: a compute set of blocks, or one for each step of the depth, and
// one that adds up partial sums computed away from the output.
#include <algorithm>
#include <poputil/VertexTemplates.hpp>

#include "executor/operations.hpp"
#include "executor/ops/compute_step.hpp"

namespace snnjax::executor::ops {
namespace {

void checkDot(const OperationCheck& op) {
  op.needCounts(2, 1, 4);
  const Shape &a = op.input(0).shape, &b = op.input(1).shape;
  const Shape a_batch = op.dimensions(0, a.size()), b_batch = op.dimensions(1, b.size());
  const Shape a_sum = op.dimensions(2, a.size()), b_sum = op.dimensions(3, b.size());
  op.need(a_batch.size() == b_batch.size() && a_sum.size() == b_sum.size(), "pair the dimensions of its operands");
  Shape result, a_taken = a_batch, b_taken = b_batch;
  for (std::size_t i = 0; i < a_batch.size(); ++i) {
    op.need(a[a_batch[i]] == b[b_batch[i]], "pair dimensions of one size");
    result.push_back(a[a_batch[i]]);
  }
  for (std::size_t i = 0; i < a_sum.size(); ++i) {
    op.need(a[a_sum[i]] == b[b_sum[i]] && !holds(a_batch, a_sum[i]) && !holds(b_batch, b_sum[i]),
            "pair other dimensions of one size");
    a_taken.push_back(a_sum[i]);
    b_taken.push_back(b_sum[i]);
  }
  for (const std::size_t size : without(a, a_taken)) result.push_back(size);
  for (const std::size_t size : without(b, b_taken)) result.push_back(size);
  op.needOutput(result);
  const Dtype dtype = op.input(0).dtype;
  op.needSameDtype(op.input(0), op.input(1));
  op.need(op.output().dtype == dtype || op.output().dtype == Dtype::kFloat32, "give its operands' type or float32");
}

// Block [m, n] of group g, over part k of the depth.
struct ProductBlock {
  std::size_t group, m, k, n;
  std::size_t tile;
};

class ProductBlocks {
 public:
  ProductBlocks(const Product& product, const ProductPlan& plan, std::size_t tiles)
      : product_(product), plan_(plan), tiles_(tiles) {}

  template <class Body>
  void forEach(Body&& body) const {
    const bool turned = plan_.main == ProductPlan::Main::Lhs ? product_.lhsDepthFirst() : product_.rhsDepthFirst();
    for (std::size_t g = 0; g < product_.groups; ++g) {
      for (std::size_t m = 0; m < plan_.m_parts; ++m) {
        for (std::size_t k = 0; k < plan_.k_parts; ++k) {
          for (std::size_t n = 0; n < plan_.n_parts; ++n) {
            body(ProductBlock{g, m, k, n, firstTile(g) + plan_.tile(m, k, n, turned)});
          }
        }
      }
    }
  }

  poplar::Interval rows(std::size_t m) const { return part(m, plan_.m_block, product_.m); }
  poplar::Interval depth(std::size_t k) const { return part(k, plan_.k_block, product_.k); }
  // The range of a part of the depth that one step multiplies; empty if none is left.
  poplar::Interval depth(std::size_t k, std::size_t step) const {
    const poplar::Interval all = depth(k);
    const std::size_t begin = std::min(all.end(), all.begin() + step * plan_.k_step);
    return {begin, std::min(all.end(), begin + plan_.k_step)};
  }
  poplar::Interval columns(std::size_t n) const { return part(n, plan_.n_block, product_.n); }
  // Whether an array of the product's output has exactly these blocks, in their order.
  bool areThoseOf(const Blocks& layout) const;

  const Product& product() const { return product_; }
  const ProductPlan& plan() const { return plan_; }

 private:
  // Groups are placed side by side if there are enough tiles, else several share one.
  std::size_t firstTile(std::size_t group) const {
    const bool side_by_side = product_.groups * plan_.tiles() <= tiles_;
    return side_by_side ? group * plan_.tiles() : group * tiles_ / product_.groups;
  }
  static poplar::Interval part(std::size_t part, std::size_t block, std::size_t size) {
    return {part * block, std::min(size, (part + 1) * block)};
  }

  const Product& product_;
  const ProductPlan& plan_;
  std::size_t tiles_;
};

class PartialSums {
 public:
  PartialSums(Lowering& lowering, const ProductBlocks& blocks, const poplar::Type& type);

  // The sums of a block, flat, on its tile.
  const poplar::Tensor& of(const ProductBlock& block) const { return sums_[index(block)]; }
  // Adds their sum over the parts of the depth, each tile its own part of the output.
  void addUp(const poplar::Tensor& out) const;

 private:
  std::size_t index(const ProductBlock& block) const;
  std::vector<poplar::Tensor> inOrder(const Shape& shape) const;

  Lowering& lowering_;
  const ProductBlocks& blocks_;
  poplar::Type type_;
  std::vector<poplar::Tensor> sums_;
};

bool ProductBlocks::areThoseOf(const Blocks& layout) const {
  return product_.groups == 1 && layout.leading == 1 && !layout.columns_first && layout.rows == product_.m &&
         layout.columns == product_.n && layout.row_block == plan_.m_block && layout.column_block == plan_.n_block &&
         layout.first_tile == 0;
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

// The sums of each part of the depth, in the memory order of the output's shape.
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
    std::vector<poplar::Tensor> parts;
    for (const poplar::Tensor& sum : sums) parts.push_back(sum.slice(cuts[tile], cuts[tile + 1]));
    step.add(poputil::templateVertex("snnjax::SumPartials", type_, out.elementType()), tile,
             {{"in", poplar::concat(parts)},
              {"out", to.slice(cuts[tile], cuts[tile + 1])},
              {"parts", asUnsigned(parts.size())},
              {"count", asUnsigned(cuts[tile + 1] - cuts[tile])}});
  }
  step.execute();
}

// {groups, rows, columns} of an operand.
poplar::Tensor asMatrices(const poplar::Tensor& operand, const std::vector<unsigned>& batching,
                          const std::vector<unsigned>& rows, const std::vector<unsigned>& columns) {
  std::vector<unsigned> order = batching;
  order.insert(order.end(), rows.begin(), rows.end());
  order.insert(order.end(), columns.begin(), columns.end());
  const auto size = [&operand](const std::vector<unsigned>& dimensions) {
    std::size_t product = 1;
    for (const unsigned d : dimensions) product *= operand.dim(d);
    return product;
  };
  return operand.dimShuffle(order).reshape({size(batching), size(rows), size(columns)});
}

// {groups, rows, columns} transposed to {groups, columns, rows} in its own step, for operands that travel to many
// tiles.
poplar::Tensor turned(Lowering& lowering, const poplar::Tensor& matrices) {
  const std::size_t groups = matrices.dim(0), rows = matrices.dim(1), columns = matrices.dim(2);
  const std::size_t tiles = lowering.layouts().tiles();
  constexpr std::size_t kLeast = 8;  // contiguous elements: for fewer, the message costs more than the data
  const std::size_t width = std::max(std::min(kLeast, columns), ceilDivide(groups * columns, tiles));
  const std::size_t parts = ceilDivide(columns, width);
  const std::size_t row_parts = std::clamp<std::size_t>(tiles / (groups * parts), 1, ceilDivide(rows, kLeast));
  std::vector<std::size_t> counts(tiles, 0);
  const auto forEach = [&](auto&& body) {
    for (std::size_t i = 0; i < groups * parts * row_parts; ++i) {
      const std::size_t part = i / row_parts % parts, row_part = i % row_parts;
      const poplar::Interval of_rows(row_part * rows / row_parts, (row_part + 1) * rows / row_parts);
      const poplar::Interval of_columns(part * width, std::min(columns, (part + 1) * width));
      body(i % tiles, matrices[i / row_parts / parts].slice(of_rows, 0).slice(of_columns, 1));
    }
  };
  forEach([&](std::size_t tile, const poplar::Tensor& part) { counts[tile] += part.numElements(); });
  std::vector<std::size_t> next(tiles, 0);
  for (std::size_t tile = 1; tile < tiles; ++tile) next[tile] = next[tile - 1] + counts[tile - 1];
  const poplar::Tensor all = lowering.makeScratch(matrices.elementType(), counts);
  std::vector<poplar::Tensor> made;
  ComputeStep step(lowering, "turn");
  forEach([&](std::size_t tile, const poplar::Tensor& part) {
    const poplar::Tensor to = all.slice(next[tile], next[tile] + part.numElements());
    next[tile] += part.numElements();
    step.add(
        poputil::templateVertex("snnjax::Transpose", part.elementType()), tile,
        {{"in", part.flatten()}, {"out", to}, {"rows", asUnsigned(part.dim(0))}, {"columns", asUnsigned(part.dim(1))}});
    made.push_back(to.reshape({part.dim(1), part.dim(0)}));
  });
  step.execute();
  std::vector<poplar::Tensor> of_groups;
  for (std::size_t group = 0; group < groups; ++group) {
    std::vector<poplar::Tensor> of_columns;
    for (std::size_t part = 0; part < parts; ++part) {
      const auto first = made.begin() + static_cast<std::ptrdiff_t>((group * parts + part) * row_parts);
      of_columns.push_back(poplar::concat(std::vector(first, first + static_cast<std::ptrdiff_t>(row_parts)), 1));
    }
    of_groups.push_back(poplar::concat(of_columns).expand({0}));
  }
  return poplar::concat(of_groups);
}

// Operands as stored, or transposed.
struct Operands {
  poplar::Tensor lhs, rhs;  // {groups, rows, columns}
  bool lhs_depth_first, rhs_depth_first;

  Operands(Lowering& lowering, const Product& product, const Instruction& instruction)
      : lhs_depth_first(product.lhsDepthFirst()), rhs_depth_first(product.rhsDepthFirst()) {
    const poplar::Tensor left = lowering.get(instruction.inputs[0]), right = lowering.get(instruction.inputs[1]);
    lhs = lhs_depth_first ? asMatrices(left, product.lhs_batching, product.lhs_contracting, product.lhsFree())
                          : asMatrices(left, product.lhs_batching, product.lhsFree(), product.lhs_contracting);
    rhs = rhs_depth_first ? asMatrices(right, product.rhs_batching, product.rhs_contracting, product.rhsFree())
                          : asMatrices(right, product.rhs_batching, product.rhsFree(), product.rhs_contracting);
    const ProductPlan& plan = lowering.layouts().of(product);
    if (plan.turns_lhs) turn(lowering, lhs, lhs_depth_first);
    if (plan.turns_rhs) turn(lowering, rhs, rhs_depth_first);
  }

  static void turn(Lowering& lowering, poplar::Tensor& matrices, bool& depth_first) {
    matrices = turned(lowering, matrices);
    depth_first = !depth_first;
  }

  void addProduct(ComputeStep& step, const ProductBlocks& blocks, const ProductBlock& block, std::size_t part,
                  const poplar::Tensor& to) const {
    const poplar::Interval m = blocks.rows(block.m), k = blocks.depth(block.k, part), n = blocks.columns(block.n);
    if (k.size() == 0) return;
    const poplar::Tensor a = lhs[block.group].slice(lhs_depth_first ? k : m, 0).slice(lhs_depth_first ? m : k, 1);
    const poplar::Tensor b = rhs[block.group].slice(rhs_depth_first ? k : n, 0).slice(rhs_depth_first ? n : k, 1);
    const ProductPlan& plan = blocks.plan();
    const std::size_t turning = (plan.lhs_turned ? a.numElements() : 0) + (plan.rhs_turned ? b.numElements() : 0);
    step.add(poputil::templateVertex("snnjax::MatrixProduct", lhs.elementType(), to.elementType()), block.tile,
             {{"a", a.flatten()},
              {"b", b.flatten()},
              {"out", to},
              {"rows", asUnsigned(m.size())},
              {"depth", asUnsigned(k.size())},
              {"columns", asUnsigned(n.size())},
              {"a_across", lhs_depth_first},
              {"b_deep", !rhs_depth_first},
              {"holds_a", plan.holds_lhs},
              {"turning", asUnsigned(turning)},
              {"accumulate", part > 0}});
  }

  // `sumsOf(block)` is where the sums of a block go, on its tile.
  template <class SumsOf>
  void addProducts(Lowering& lowering, const ProductBlocks& blocks, SumsOf&& sumsOf) const {
    for (std::size_t part = 0; part < blocks.plan().steps(); ++part) {
      ComputeStep step(lowering, "products");
      blocks.forEach([&](const ProductBlock& block) { addProduct(step, blocks, block, part, sumsOf(block)); });
      step.execute();
    }
  }
};

// Whether sums of halves are halves, on a tile and between tiles, as Poplar's option partialsType says.
bool halfPartials(const Plan& plan) {
  return std::ranges::any_of(plan.options, [](const auto& option) {
    return option.first.ends_with("half_partials") && (option.second == "true" || option.second == "1");
  });
}

void fillZeros(Lowering& lowering, const poplar::Tensor& out) {
  const poplar::Tensor zero = lowering.graph().addConstant(out.elementType(), {1}, 0.0F, lowering.debug("zero"));
  lowering.graph().setTileMapping(zero, 0);
  copy(lowering, zero.broadcast(asUnsigned(out.numElements()), 0), out.flatten(), "zeros");
}

// Whether each block of the output is whole on the tile that computes it.
bool isMadeWhereItLies(const ProductBlocks& blocks, const Blocks& layout) {
  const ProductPlan& plan = blocks.plan();
  return plan.main == ProductPlan::Main::Out && plan.k_parts == 1 && plan.spacing == 1 && layout.spread == 1 &&
         blocks.areThoseOf(layout);
}

void dot(Lowering& lowering, const Instruction& instruction) {
  const Dtype dtype = lowering.type(instruction.inputs[0]).dtype;
  if (dtype != lowering.type(instruction.inputs[1]).dtype || (dtype != Dtype::kFloat32 && dtype != Dtype::kFloat16)) {
    lowering.refuse(instruction, "both operands must be float32 or both float16", "Convert them");
  }
  const Product product(lowering.plan(), instruction);
  const poplar::Tensor out = lowering.make(instruction.outputs[0]);
  if (out.numElements() == 0) return;
  if (product.k == 0) return fillZeros(lowering, out);
  const Operands operands(lowering, product, instruction);
  const Layouts& layouts = lowering.layouts();
  const ProductBlocks blocks(product, layouts.of(product), layouts.tiles());
  const bool halves = dtype == Dtype::kFloat16 && halfPartials(lowering.plan());
  const poplar::Type type = halves ? poplar::HALF : poplar::FLOAT;
  if (type == out.elementType() && isMadeWhereItLies(blocks, layouts.of(out.shape()).blocks())) {
    const poplar::Tensor matrix = out.reshape({product.m, product.n});
    return operands.addProducts(lowering, blocks, [&](const ProductBlock& block) {
      return matrix.slice(blocks.rows(block.m), 0).slice(blocks.columns(block.n), 1).flatten();
    });
  }
  const PartialSums sums(lowering, blocks, type);
  operands.addProducts(lowering, blocks, [&](const ProductBlock& block) { return sums.of(block); });
  sums.addUp(out);
}

}  // namespace

extern const Operation kDot = {checkDot, dot};

}  // namespace snnjax::executor::ops
