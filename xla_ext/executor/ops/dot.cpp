// Products of matrices, as the planner divides them: a compute set of blocks, or one for each step of the depth, and
// one that adds up partial sums computed away from the output. Where the vendor's library is there, poplin's: the
// vertex of ours that stands for the vendor's would be plain C++ on a chip, a multiply-add in four cycles instead of
// sixteen in one.
#include <poplin/MatMul.hpp>
#include <poputil/VertexTemplates.hpp>

#include "executor/operations.hpp"
#include "executor/ops/compute_step.hpp"
#include "executor/ops/partial_sums.hpp"
#include "executor/ops/product_blocks.hpp"
#include "executor/ops/transposition.hpp"
#include "executor/plan/options.hpp"

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
    if (blocks.plan().transposes_lhs) {
      lhs = transposed(lowering, transpositionOfLhs(blocks), lhs);
      lhs_depth_first = !lhs_depth_first;
    }
    if (blocks.plan().transposes_rhs) {
      rhs = transposed(lowering, transpositionOfRhs(blocks), rhs);
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
    const std::size_t transposed =
        (plan.lhs_transposed ? a.numElements() : 0) + (plan.rhs_transposed ? b.numElements() : 0);
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
              {"transposed", asUnsigned(transposed)},
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
  return dtype == Dtype::kFloat16 && optionsOf(plan).half_partials ? poplar::HALF : poplar::FLOAT;
}

// What dot() asks for: operands that are transposed, and sums that are not made where the output lies.
std::vector<ScratchCall> scratchOf(const Plan& plan, const Layouts& layouts, const Instruction& instruction) {
  const Product product(plan, instruction);
  if (plan.vendor_products || product.groups * product.m * product.k * product.n == 0) return {};
  const ProductPlan& division = layouts.of(product);
  const ProductBlocks blocks(product, division, layouts.tiles());
  const std::size_t of_operands = numBytes(product.dtype);
  std::vector<ScratchCall> calls;
  if (division.transposes_lhs) calls.push_back({of_operands, transpositionOfLhs(blocks).counts()});
  if (division.transposes_rhs) calls.push_back({of_operands, transpositionOfRhs(blocks).counts()});
  const poplar::Type type = typeOfSums(plan, product.dtype);
  const poplar::Type out = poplarType(plan.types[instruction.outputs[0]].dtype);
  if (type == out && isMadeWhereItLies(blocks, layouts.of(product.out).blocks())) return calls;
  calls.push_back({type.size(), blocks.counts()});
  calls.push_back({out.size(), evenShares(division, layouts.cuts(product.out))});
  return calls;
}

void multiplyByPoplin(Lowering& lowering, const Product& product, const Instruction& instruction,
                      const poplar::Tensor& out) {
  const poplar::Tensor lhs = asMatrices(lowering.get(instruction.inputs[0]), product.lhs_batching, product.lhsFree(),
                                        product.lhs_contracting),
                       rhs = asMatrices(lowering.get(instruction.inputs[1]), product.rhs_batching,
                                        product.rhs_contracting, product.rhsFree());
  const poplar::Type sums = typeOfSums(lowering.plan(), product.dtype);
  const poplar::OptionFlags options = {{"partialsType", sums == poplar::HALF ? "half" : "float"}};
  const poplar::Tensor results = out.reshape({product.groups, product.m, product.n});
  for (std::size_t group = 0; group < product.groups; ++group) {
    const poplar::Tensor result = poplin::matMul(lowering.graph(), lhs[group], rhs[group], lowering.program(),
                                                 out.elementType(), lowering.debug("products"), options);
    copy(lowering, result, results[group], "product");
  }
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
  if (lowering.plan().vendor_products) return multiplyByPoplin(lowering, product, instruction, out);
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
