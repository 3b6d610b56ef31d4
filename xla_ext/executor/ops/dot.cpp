// Products of matrices, as the planner divides them: a compute set of blocks, or one for each step of the depth, and
// one that adds up partial sums computed away from the output.
#include <algorithm>
#include <numeric>
#include <poputil/VertexTemplates.hpp>
#include <tuple>

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
  std::vector<poplar::Interval> allRows() const {
    return all(plan_.m_parts, [this](std::size_t m) { return rows(m); });
  }
  std::vector<poplar::Interval> allColumns() const {
    return all(plan_.n_parts, [this](std::size_t n) { return columns(n); });
  }
  // What is multiplied at once, all along the depth.
  std::vector<poplar::Interval> depthSteps() const {
    const std::size_t steps = plan_.steps();
    return all(plan_.k_parts * steps, [=, this](std::size_t i) { return depth(i / steps, i % steps); });
  }
  std::size_t elements(const ProductBlock& block) const { return rows(block.m).size() * columns(block.n).size(); }
  // Whether an array of the product's output has exactly these blocks, in their order.
  bool areThoseOf(const Blocks& layout) const;
  // Of the sums of all blocks, how many elements each tile makes.
  std::vector<std::size_t> counts() const;

  const Product& product() const { return product_; }
  const ProductPlan& plan() const { return plan_; }
  std::size_t tiles() const { return tiles_; }

 private:
  // Groups are placed side by side if there are enough tiles, else several share one.
  std::size_t firstTile(std::size_t group) const {
    const bool side_by_side = product_.groups * plan_.tiles() <= tiles_;
    return side_by_side ? group * plan_.tiles() : group * tiles_ / product_.groups;
  }
  template <class PartOf>
  static std::vector<poplar::Interval> all(std::size_t count, PartOf&& part_of) {
    std::vector<poplar::Interval> parts;
    for (std::size_t i = 0; i < count; ++i) {
      if (part_of(i).size() > 0) parts.push_back(part_of(i));
    }
    return parts;
  }
  static poplar::Interval part(std::size_t part, std::size_t block, std::size_t size) {
    return {part * block, std::min(size, (part + 1) * block)};
  }

  const Product& product_;
  const ProductPlan& plan_;
  std::size_t tiles_;
};

// How many sums each tile makes, if partial ones should be added up on all tiles rather than on those that hold the
// output: where one of these would take several times what it would otherwise. Else nothing.
std::vector<std::size_t> evenShares(const ProductPlan& plan, const std::vector<std::size_t>& cuts) {
  constexpr std::size_t kSeveral = 4, kLeast = 32, kGrain = 8;
  const std::size_t tiles = cuts.size() - 1, elements = cuts.back();
  std::size_t most = 0;
  for (std::size_t tile = 0; tile < tiles; ++tile) most = std::max(most, cuts[tile + 1] - cuts[tile]);
  const std::size_t share = std::max(kLeast, ceilDivide(ceilDivide(elements, tiles), kGrain) * kGrain);
  if (plan.k_parts == 1 || most <= kSeveral * share) return {};
  std::vector<std::size_t> counts(tiles, 0);
  for (std::size_t tile = 0; tile * share < elements; ++tile) {
    counts[tile] = std::min(share, elements - tile * share);
  }
  return counts;
}

class PartialSums {
 public:
  PartialSums(Lowering& lowering, const ProductBlocks& blocks, const poplar::Type& type);

  // The sums of a block, flat, on its tile.
  const poplar::Tensor& of(const ProductBlock& block) const { return sums_[index(block)]; }
  // Adds their sum over the parts of the depth, each tile its own part of the output.
  void addUp(const poplar::Tensor& out) const;

 private:
  std::size_t index(const ProductBlock& block) const;
  std::vector<poplar::Tensor> byPart() const;
  poplar::Tensor inOrder(const poplar::Tensor& blocks, const Shape& shape) const;
  void addParts(const std::vector<poplar::Tensor>& parts, const poplar::Tensor& to,
                const std::vector<std::size_t>& cuts) const;

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

std::vector<std::size_t> ProductBlocks::counts() const {
  std::vector<std::size_t> counts(tiles_, 0);
  forEach([&](const ProductBlock& block) { counts[block.tile] += elements(block); });
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

// How matrices {groups, rows, columns} are divided among the tiles to be transposed: their rows are cut as products use
// them, so that each column of a part is one message.
class Turning {
 public:
  Turning(std::size_t groups, const std::vector<poplar::Interval>& taken, std::size_t columns, std::size_t tiles)
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

  // body(tile, group, rows, columns)
  template <class Body>
  void forEach(Body&& body) const {
    std::size_t tile = 0;
    for (std::size_t group = 0; group < groups_; ++group) {
      for (std::size_t column = 0; column < columns_; column += width_) {
        const poplar::Interval columns(column, std::min(columns_, column + width_));
        for (const poplar::Interval& rows : rows_) body(tile++ % tiles_, group, rows, columns);
      }
    }
  }
  std::vector<std::size_t> counts() const {
    std::vector<std::size_t> counts(tiles_, 0);
    forEach([&](std::size_t tile, std::size_t, const poplar::Interval& rows, const poplar::Interval& columns) {
      counts[tile] += rows.size() * columns.size();
    });
    return counts;
  }
  // Of parts in order, each {columns, rows}: {groups, columns, rows}.
  poplar::Tensor joined(const std::vector<poplar::Tensor>& made) const {
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

 private:
  std::size_t groups_, columns_, tiles_;
  std::size_t width_ = 1;  // columns of a part
  std::vector<poplar::Interval> rows_;
};

// The first dimension of an operand is the depth, or the one that stays, of which products use the intervals `free`.
Turning turningOf(const ProductBlocks& blocks, bool depth_first, const std::vector<poplar::Interval>& free) {
  const Product& product = blocks.product();
  const std::vector<poplar::Interval> depth = blocks.depthSteps();
  const auto& [taken, across] = depth_first ? std::tie(depth, free) : std::tie(free, depth);
  return {product.groups, taken, across.back().end(), blocks.tiles()};
}
Turning turningOfLhs(const ProductBlocks& blocks) {
  return turningOf(blocks, blocks.product().lhsDepthFirst(), blocks.allRows());
}
Turning turningOfRhs(const ProductBlocks& blocks) {
  return turningOf(blocks, blocks.product().rhsDepthFirst(), blocks.allColumns());
}

// {groups, rows, columns} transposed to {groups, columns, rows} in its own step, for operands that travel to many
// tiles.
poplar::Tensor turned(Lowering& lowering, const Turning& turning, const poplar::Tensor& matrices) {
  const std::vector<std::size_t> counts = turning.counts();
  std::vector<std::size_t> next(counts.size() + 1, 0);
  std::partial_sum(counts.begin(), counts.end(), next.begin() + 1);
  const poplar::Tensor all = lowering.makeScratch(matrices.elementType(), counts);
  std::vector<poplar::Tensor> made;
  ComputeStep step(lowering, "turn");
  turning.forEach([&](std::size_t tile, std::size_t group, const poplar::Interval& rows,
                      const poplar::Interval& columns) {
    const poplar::Tensor part = matrices[group].slice(rows, 0).slice(columns, 1);
    const poplar::Tensor to = all.slice(next[tile], next[tile] + part.numElements());
    next[tile] += part.numElements();
    step.add(
        poputil::templateVertex("snnjax::Transpose", part.elementType()), tile,
        {{"in", part.flatten()}, {"out", to}, {"rows", asUnsigned(part.dim(0))}, {"columns", asUnsigned(part.dim(1))}});
    made.push_back(to.reshape({part.dim(1), part.dim(0)}));
  });
  step.execute();
  return turning.joined(made);
}

// Operands as stored, or transposed.
struct Operands {
  poplar::Tensor lhs, rhs;  // {groups, rows, columns}
  bool lhs_depth_first, rhs_depth_first;

  Operands(Lowering& lowering, const ProductBlocks& blocks, const Instruction& instruction)
      : lhs_depth_first(blocks.product().lhsDepthFirst()), rhs_depth_first(blocks.product().rhsDepthFirst()) {
    const Product& product = blocks.product();
    const poplar::Tensor left = lowering.get(instruction.inputs[0]), right = lowering.get(instruction.inputs[1]);
    lhs = lhs_depth_first ? asMatrices(left, product.lhs_batching, product.lhs_contracting, product.lhsFree())
                          : asMatrices(left, product.lhs_batching, product.lhsFree(), product.lhs_contracting);
    rhs = rhs_depth_first ? asMatrices(right, product.rhs_batching, product.rhs_contracting, product.rhsFree())
                          : asMatrices(right, product.rhs_batching, product.rhsFree(), product.rhs_contracting);
    if (blocks.plan().turns_lhs) {
      lhs = turned(lowering, turningOfLhs(blocks), lhs);
      lhs_depth_first = !lhs_depth_first;
    }
    if (blocks.plan().turns_rhs) {
      rhs = turned(lowering, turningOfRhs(blocks), rhs);
      rhs_depth_first = !rhs_depth_first;
    }
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

poplar::Type typeOfSums(const Plan& plan, Dtype dtype) {
  return dtype == Dtype::kFloat16 && halfPartials(plan) ? poplar::HALF : poplar::FLOAT;
}

// What dot() asks for: operands that are turned, and sums that are not made where the output lies.
std::vector<ScratchCall> scratchOf(const Plan& plan, const Layouts& layouts, const Instruction& instruction) {
  const Product product(plan, instruction);
  if (product.groups * product.m * product.k * product.n == 0) return {};
  const ProductPlan& division = layouts.of(product);
  const ProductBlocks blocks(product, division, layouts.tiles());
  const std::size_t of_operands = numBytes(product.dtype);
  std::vector<ScratchCall> calls;
  if (division.turns_lhs) calls.push_back({of_operands, turningOfLhs(blocks).counts()});
  if (division.turns_rhs) calls.push_back({of_operands, turningOfRhs(blocks).counts()});
  const poplar::Type type = typeOfSums(plan, product.dtype);
  const poplar::Type out = poplarType(plan.types[instruction.outputs[0]].dtype);
  if (type == out && isMadeWhereItLies(blocks, layouts.of(product.out).blocks())) return calls;
  calls.push_back({type.size(), blocks.counts()});
  calls.push_back({out.size(), evenShares(division, layouts.cuts(product.out))});
  return calls;
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
  const Layouts& layouts = lowering.layouts();
  const ProductBlocks blocks(product, layouts.of(product), layouts.tiles());
  const Operands operands(lowering, blocks, instruction);
  const poplar::Type type = typeOfSums(lowering.plan(), dtype);
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

extern const Operation kDot = {checkDot, dot, nullptr, scratchOf};

}  // namespace snnjax::executor::ops
