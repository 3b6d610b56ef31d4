// Products of matrices: a compute set of blocks, and where the depth is divided one that sums up partial results.
#include <poputil/VertexTemplates.hpp>

#include "executor/ops/compute_step.hpp"
#include "executor/registry.hpp"

namespace snnjax::executor::ops {
namespace {

using poputil::templateVertex;

// The interval of part `part`.
poplar::Interval partOf(std::size_t part, std::size_t block, std::size_t size) {
  return {part * block, std::min(size, (part + 1) * block)};
}

// {groups, rows, columns} of an operand, in the order in which it lies.
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

class Dot {
 public:
  Dot(Lowering& lowering, const Instruction& instruction)
      : lowering_(lowering), product_(lowering.plan(), instruction), plan_(lowering.layouts().of(product_)) {
    const poplar::Tensor lhs = lowering.get(instruction.inputs[0]), rhs = lowering.get(instruction.inputs[1]);
    type_ = lhs.elementType();
    lhs_depth_first_ = product_.lhsDepthFirst();
    // There is no codelet for both the other way round: the left one is read across then.
    rhs_depth_first_ = product_.rhsDepthFirst();
    lhs_across_ = lhs_depth_first_ && !rhs_depth_first_;
    lhs_ = lhs_depth_first_ && !lhs_across_
               ? asMatrices(lhs, product_.lhs_batching, product_.lhs_contracting, product_.lhsFree())
               : asMatrices(lhs, product_.lhs_batching, product_.lhsFree(), product_.lhs_contracting);
    rhs_ = rhs_depth_first_ ? asMatrices(rhs, product_.rhs_batching, product_.rhs_contracting, product_.rhsFree())
                            : asMatrices(rhs, product_.rhs_batching, product_.rhsFree(), product_.rhs_contracting);
    out_ = lowering.make(instruction.outputs[0]);
    sum_type_ = type_ == poplar::HALF && halfPartials() ? poplar::HALF : poplar::FLOAT;
  }

  void lower() {
    if (out_.numElements() == 0) return;
    if (product_.k == 0) return fillZeros();
    const bool at_once = plan_.k_parts == 1 && sum_type_ == out_.elementType() && liesAsPlanned();
    if (!at_once) makePartials();
    ComputeStep step(lowering_, "products");
    forEachBlock([&](std::size_t g, std::size_t m, std::size_t k, std::size_t n, std::size_t tile) {
      const poplar::Tensor to = at_once ? blockOfOut(m, n) : partials_[index(g, m, k, n)];
      addProduct(step, g, partOf(m, plan_.m_block, product_.m), partOf(k, plan_.k_block, product_.k),
                 partOf(n, plan_.n_block, product_.n), to, tile);
    });
    step.execute();
    if (!at_once) sumPartials();
  }

 private:
  bool halfPartials() const {
    for (const auto& [key, value] : lowering_.plan().options) {
      if (key == "half_partials") return value == "true" || value == "1";
    }
    return false;
  }

  // Groups lie side by side where there are tiles for all, else several share one.
  std::size_t firstTile(std::size_t group) const {
    const std::size_t tiles = lowering_.layouts().tiles();
    return product_.groups * plan_.tiles() <= tiles ? group * plan_.tiles() : group * tiles / product_.groups;
  }

  template <class Body>
  void forEachBlock(Body&& body) const {
    const bool turned = plan_.main == ProductPlan::Main::Lhs ? product_.lhsDepthFirst() : product_.rhsDepthFirst();
    for (std::size_t g = 0; g < product_.groups; ++g) {
      for (std::size_t m = 0; m < plan_.m_parts; ++m) {
        for (std::size_t k = 0; k < plan_.k_parts; ++k) {
          for (std::size_t n = 0; n < plan_.n_parts; ++n) body(g, m, k, n, firstTile(g) + plan_.tile(m, k, n, turned));
        }
      }
    }
  }

  std::size_t index(std::size_t g, std::size_t m, std::size_t k, std::size_t n) const {
    return ((g * plan_.m_parts + m) * plan_.k_parts + k) * plan_.n_parts + n;
  }

  Blocks blocksOfOut() const { return {1, product_.m, product_.n, plan_.m_block, plan_.n_block}; }

  // Whether the output's own layout has these very blocks, each on the tile that makes it.
  bool liesAsPlanned() const {
    const Blocks& blocks = lowering_.layouts().of(out_.shape()).blocks();
    return product_.groups == 1 && plan_.main == ProductPlan::Main::Out && sameBlocks(blocks) && blocks.spread == 1 &&
           plan_.spacing == 1;
  }
  bool sameBlocks(const Blocks& blocks) const {
    return blocks.leading == 1 && blocks.rows == product_.m && blocks.columns == product_.n &&
           blocks.row_block == plan_.m_block && blocks.column_block == plan_.n_block && blocks.first_tile == 0;
  }

  poplar::Tensor blockOfOut(std::size_t m, std::size_t n) const {
    return out_.reshape({product_.m, product_.n})
        .slice(partOf(m, plan_.m_block, product_.m), 0)
        .slice(partOf(n, plan_.n_block, product_.n), 1)
        .flatten();
  }

  void addProduct(ComputeStep& step, std::size_t g, const poplar::Interval& m, const poplar::Interval& k,
                  const poplar::Interval& n, const poplar::Tensor& to, std::size_t tile) const {
    const bool turned_a = lhs_depth_first_ && !lhs_across_;
    const poplar::Tensor a = lhs_[g].slice(turned_a ? k : m, 0).slice(turned_a ? m : k, 1);
    const poplar::Tensor b = rhs_[g].slice(rhs_depth_first_ ? k : n, 0).slice(rhs_depth_first_ ? n : k, 1);
    const char* const name = turned_a           ? "snnjax::TransposedDot"
                             : rhs_depth_first_ ? "snnjax::Dot"
                                                : "snnjax::DotTransposed";
    step.add(templateVertex(name, type_, sum_type_), tile,
             {{"a", a.flatten()},
              {"b", b.flatten()},
              {"out", to},
              {"rows", asUnsigned(m.size())},
              {"depth", asUnsigned(k.size())},
              {"columns", asUnsigned(n.size())},
              {"accumulate", false}});
  }

  // A flat tensor for each block of sums, on its tile.
  void makePartials() {
    std::vector<std::size_t> counts(lowering_.layouts().tiles(), 0);
    std::vector<std::size_t> first(product_.groups * plan_.parts()), tile_of(first.size());
    const auto size = [this](std::size_t m, std::size_t n) {
      return partOf(m, plan_.m_block, product_.m).size() * partOf(n, plan_.n_block, product_.n).size();
    };
    forEachBlock([&](std::size_t g, std::size_t m, std::size_t k, std::size_t n, std::size_t tile) {
      first[index(g, m, k, n)] = counts[tile];
      tile_of[index(g, m, k, n)] = tile;
      counts[tile] += size(m, n);
    });
    std::vector<std::size_t> begin(counts.size() + 1, 0);
    for (std::size_t tile = 0; tile < counts.size(); ++tile) begin[tile + 1] = begin[tile] + counts[tile];
    const poplar::Tensor all = lowering_.makeScratch(sum_type_, counts);
    partials_.resize(first.size());
    forEachBlock([&](std::size_t g, std::size_t m, std::size_t k, std::size_t n, std::size_t tile) {
      const std::size_t from = begin[tile] + first[index(g, m, k, n)];
      partials_[index(g, m, k, n)] = all.slice(from, from + size(m, n));
    });
  }

  // The sums of each part of the depth in the memory order of the output.
  std::vector<poplar::Tensor> partialsInOrder() const {
    const Layouts& layouts = lowering_.layouts();
    const Layout sums(blocksOfOut(), plan_.m_parts * plan_.n_parts);
    const bool same = product_.groups == 1 && sameBlocks(layouts.of(out_.shape()).blocks());
    std::vector<poplar::Tensor> results;
    for (std::size_t k = 0; k < plan_.k_parts; ++k) {
      std::vector<poplar::Tensor> groups;
      for (std::size_t g = 0; g < product_.groups; ++g) {
        std::vector<poplar::Tensor> blocks;
        for (std::size_t m = 0; m < plan_.m_parts; ++m) {
          for (std::size_t n = 0; n < plan_.n_parts; ++n) blocks.push_back(partials_[index(g, m, k, n)]);
        }
        const poplar::Tensor memory = poplar::concat(blocks);
        groups.push_back(same ? memory : sums.view(memory, {product_.m, product_.n}).flatten());
      }
      results.push_back(same ? groups[0] : layouts.memoryOrder(poplar::concat(groups).reshape(out_.shape())));
    }
    return results;
  }

  void sumPartials() const {
    const Layouts& layouts = lowering_.layouts();
    const std::vector<poplar::Tensor> sums = partialsInOrder();
    const poplar::Tensor out = layouts.memoryOrder(out_);
    const std::vector<std::size_t>& cuts = layouts.cuts(out_.shape());
    ComputeStep step(lowering_, "sum");
    for (std::size_t tile = 0; tile < layouts.tiles(); ++tile) {
      if (cuts[tile] == cuts[tile + 1]) continue;
      std::vector<poplar::Tensor> rows;
      for (const poplar::Tensor& sum : sums) rows.push_back(sum.slice(cuts[tile], cuts[tile + 1]));
      step.add(templateVertex("snnjax::Reduce", "snnjax::Sum", sum_type_, out_.elementType()), tile,
               {{"in", poplar::concat(rows)},
                {"out", out.slice(cuts[tile], cuts[tile + 1])},
                {"outer", 1U},
                {"rows", asUnsigned(rows.size())},
                {"inner", asUnsigned(cuts[tile + 1] - cuts[tile])}});
    }
    step.execute();
  }

  void fillZeros() const {
    poplar::Tensor zero = lowering_.graph().addConstant(out_.elementType(), {1}, 0.0F, lowering_.debug("zero"));
    lowering_.graph().setTileMapping(zero, 0);
    copy(lowering_, zero.broadcast(asUnsigned(out_.numElements()), 0), out_.flatten(), "zeros");
  }

  Lowering& lowering_;
  Product product_;
  const ProductPlan& plan_;
  poplar::Tensor lhs_, rhs_, out_;  // operands {groups, ...}
  poplar::Type type_, sum_type_;
  bool lhs_depth_first_ = false, rhs_depth_first_ = false, lhs_across_ = false;
  std::vector<poplar::Tensor> partials_;
};

}  // namespace

void dot(Lowering& lowering, const Instruction& instruction) {
  const Dtype lhs = lowering.type(instruction.inputs[0]).dtype, rhs = lowering.type(instruction.inputs[1]).dtype;
  if (lhs != rhs || (lhs != Dtype::kFloat32 && lhs != Dtype::kFloat16)) {
    lowering.refuse(instruction, "both operands must be float32 or both float16", "Convert them");
  }
  Dot(lowering, instruction).lower();
}

}  // namespace snnjax::executor::ops
