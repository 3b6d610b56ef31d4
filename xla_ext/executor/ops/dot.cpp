// Products of matrices: a compute set of blocks, and where the depth is divided one that sums up partial results.
#include <algorithm>
#include <poputil/VertexTemplates.hpp>

#include "executor/ops/compute_step.hpp"
#include "executor/ops/product_blocks.hpp"
#include "executor/registry.hpp"

namespace snnjax::executor::ops {
namespace {

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

// Operands as they lie, and the codelet that takes them so. There is none for both the other way round: the left one is
// read across then.
struct Operands {
  poplar::Tensor lhs, rhs;  // {groups, rows, columns}
  bool lhs_depth_first, rhs_depth_first;

  Operands(const Product& product, const poplar::Tensor& left, const poplar::Tensor& right)
      : lhs_depth_first(product.lhsDepthFirst() && product.rhsDepthFirst()), rhs_depth_first(product.rhsDepthFirst()) {
    lhs = lhs_depth_first ? asMatrices(left, product.lhs_batching, product.lhs_contracting, product.lhsFree())
                          : asMatrices(left, product.lhs_batching, product.lhsFree(), product.lhs_contracting);
    rhs = rhs_depth_first ? asMatrices(right, product.rhs_batching, product.rhs_contracting, product.rhsFree())
                          : asMatrices(right, product.rhs_batching, product.rhsFree(), product.rhs_contracting);
  }

  const char* codelet() const {
    return lhs_depth_first ? "snnjax::TransposedDot" : rhs_depth_first ? "snnjax::Dot" : "snnjax::DotTransposed";
  }

  void addProduct(ComputeStep& step, const ProductBlocks& blocks, const ProductBlock& block,
                  const poplar::Tensor& to) const {
    const poplar::Interval m = blocks.rows(block.m), k = blocks.depth(block.k), n = blocks.columns(block.n);
    const poplar::Tensor a = lhs[block.group].slice(lhs_depth_first ? k : m, 0).slice(lhs_depth_first ? m : k, 1);
    const poplar::Tensor b = rhs[block.group].slice(rhs_depth_first ? k : n, 0).slice(rhs_depth_first ? n : k, 1);
    step.add(poputil::templateVertex(codelet(), lhs.elementType(), to.elementType()), block.tile,
             {{"a", a.flatten()},
              {"b", b.flatten()},
              {"out", to},
              {"rows", asUnsigned(m.size())},
              {"depth", asUnsigned(k.size())},
              {"columns", asUnsigned(n.size())},
              {"accumulate", false}});
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

// Whether each block of the output lies whole on the tile that makes it.
bool isMadeWhereItLies(const ProductBlocks& blocks, const Blocks& layout) {
  const ProductPlan& plan = blocks.plan();
  return plan.main == ProductPlan::Main::Out && plan.k_parts == 1 && plan.spacing == 1 && layout.spread == 1 &&
         blocks.areThoseOf(layout);
}

}  // namespace

void dot(Lowering& lowering, const Instruction& instruction) {
  const Dtype dtype = lowering.type(instruction.inputs[0]).dtype;
  if (dtype != lowering.type(instruction.inputs[1]).dtype || (dtype != Dtype::kFloat32 && dtype != Dtype::kFloat16)) {
    lowering.refuse(instruction, "both operands must be float32 or both float16", "Convert them");
  }
  const Product product(lowering.plan(), instruction);
  const Operands operands(product, lowering.get(instruction.inputs[0]), lowering.get(instruction.inputs[1]));
  const poplar::Tensor out = lowering.make(instruction.outputs[0]);
  if (out.numElements() == 0) return;
  if (product.k == 0) return fillZeros(lowering, out);
  const Layouts& layouts = lowering.layouts();
  const ProductBlocks blocks(product, layouts.of(product), layouts.tiles());
  const bool halves = dtype == Dtype::kFloat16 && halfPartials(lowering.plan());
  const poplar::Type type = halves ? poplar::HALF : poplar::FLOAT;
  ComputeStep step(lowering, "products");
  if (type == out.elementType() && isMadeWhereItLies(blocks, layouts.of(out.shape()).blocks())) {
    const poplar::Tensor matrix = out.reshape({product.m, product.n});
    blocks.forEach([&](const ProductBlock& block) {
      const poplar::Tensor to = matrix.slice(blocks.rows(block.m), 0).slice(blocks.columns(block.n), 1);
      operands.addProduct(step, blocks, block, to.flatten());
    });
    return step.execute();
  }
  const PartialSums sums(lowering, blocks, type);
  blocks.forEach([&](const ProductBlock& block) { operands.addProduct(step, blocks, block, sums.of(block)); });
  step.execute();
  sums.addUp(out);
}

}  // namespace snnjax::executor::ops
