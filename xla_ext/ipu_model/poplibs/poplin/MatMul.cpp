// Matrix products, divided as the planner says (planner/product_plan.hpp), on the matrix units of the tiles.
#include <algorithm>
#include <cstdlib>
#include <poplin/MatMul.hpp>
#include <popops/Cast.hpp>
#include <popops/Zero.hpp>
#include <poputil/Util.hpp>
#include <poputil/VertexTemplates.hpp>
#include <poputil/exceptions.hpp>
#include <string>

#include "planner/product_plan.hpp"
#include "poplibs/popops/per_tile.hpp"

namespace poplin {
namespace {

using snnjax::planner::ProductPlan;
using Shape = std::vector<std::size_t>;

constexpr const char* kShare = "availableMemoryProportion";

// The share of a tile's memory that a product may take.
double shareOf(const poplar::OptionFlags& options, const char* function) {
  constexpr double kUsualShare = 0.6;  // Poplar's
  if (!options.contains(kShare)) return kUsualShare;
  const std::string text = options.at(kShare);
  char* end = nullptr;
  const double share = std::strtod(text.c_str(), &end);
  if (end != text.c_str() && *end == '\0' && share >= 0 && share <= 1) return share;
  throw poputil::poplibs_error("poplin::" + std::string(function) + ": `" + kShare +
                               "` must be a number from 0 to 1, got " + text + ". Leave it out for 0.6.");
}

// One product and its blocks.
class Division {
 public:
  Division(const poplar::Graph& graph, const poplar::Type& type, const Shape& a, const Shape& b, const char* function,
           const poplar::OptionFlags& options)
      : m(a.empty() ? 0 : a[0]), k(a.size() < 2 ? 0 : a[1]), n(b.size() < 2 ? 0 : b[1]) {
    if (a.size() != 2 || b.size() != 2 || a[1] != b[0]) {
      throw poputil::poplibs_error("poplin::" + std::string(function) + ": `a, b` must be {m, k} and {k, n}, got " +
                                   poplibs::toString(a) + " and " + poplibs::toString(b) +
                                   ". Reshape or transpose one.");
    }
    const poplar::Target& target = graph.getTarget();
    const auto bytes =
        static_cast<std::size_t>(shareOf(options, function) * static_cast<double>(target.getBytesPerTile()));
    plan = snnjax::planner::planProduct({m, k, n, type == poplar::HALF}, {target.getNumTiles(), bytes});
  }

  bool empty() const { return m * k * n == 0; }
  poplar::Interval rows(std::size_t part) const { return cut(part, plan.m_block, m); }
  poplar::Interval columns(std::size_t part) const { return cut(part, plan.n_block, n); }
  // What of a part of the depth is multiplied in one step; empty if there is none left.
  poplar::Interval depth(std::size_t part, std::size_t step) const {
    const poplar::Interval all = cut(part, plan.k_block, k);
    const std::size_t begin = std::min(all.end(), all.begin() + step * plan.k_step);
    return {begin, std::min(all.end(), begin + plan.k_step)};
  }
  unsigned tile(std::size_t m_part, std::size_t k_part, std::size_t n_part) const {
    return static_cast<unsigned>(plan.tile(m_part, k_part, n_part, false));
  }

  std::size_t m, k, n;
  ProductPlan plan;

 private:
  static poplar::Interval cut(std::size_t part, std::size_t block, std::size_t size) {
    return {std::min(size, part * block), std::min(size, (part + 1) * block)};
  }
};

// A variable for one block, its elements spread over the tiles that need it.
poplar::Tensor addBlock(poplar::Graph& graph, const poplar::Type& type, std::size_t rows, std::size_t columns,
                        const std::vector<unsigned>& tiles, const poplar::DebugContext& debug) {
  const poplar::Tensor block = graph.addVariable(type, {rows, columns}, debug);
  const auto width = static_cast<unsigned>(graph.getTarget().getVectorWidth(type));
  const auto parts =
      poputil::splitRegions(poputil::Regions{{0, rows * columns}}, width, static_cast<unsigned>(tiles.size()));
  poplibs::Mapping mapping(graph.getTarget().getNumTiles());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    mapping[tiles[i]].insert(mapping[tiles[i]].end(), parts[i].begin(), parts[i].end());
  }
  graph.setTileMapping(block, mapping);
  return block;
}

// An operand of a product without elements.
poplar::Tensor onTileZero(poplar::Graph& graph, const poplar::Type& type, const Shape& shape,
                          const poplar::DebugContext& debug) {
  const poplar::Tensor tensor = graph.addVariable(type, shape, debug);
  graph.setTileMapping(tensor, 0);
  return tensor;
}

poplar::Tensor leftOperand(poplar::Graph& graph, const poplar::Type& type, const Division& division,
                           const poplar::DebugContext& debug) {
  if (division.empty()) return onTileZero(graph, type, {division.m, division.k}, debug);
  std::vector<poplar::Tensor> rows;
  for (std::size_t m = 0; m < division.plan.m_parts; ++m) {
    std::vector<poplar::Tensor> row;
    for (std::size_t k = 0; k < division.plan.k_parts; ++k) {
      std::vector<unsigned> tiles;
      for (std::size_t n = 0; n < division.plan.n_parts; ++n) tiles.push_back(division.tile(m, k, n));
      for (std::size_t step = 0; step < division.plan.steps(); ++step) {
        row.push_back(addBlock(graph, type, division.rows(m).size(), division.depth(k, step).size(), tiles, debug));
      }
    }
    rows.push_back(poplar::concat(row, 1));
  }
  return poplar::concat(rows, 0);
}

// Blocks lie with the depth innermost, as the unit takes them.
poplar::Tensor rightOperand(poplar::Graph& graph, const poplar::Type& type, const Division& division,
                            const poplar::DebugContext& debug) {
  if (division.empty()) return onTileZero(graph, type, {division.k, division.n}, debug);
  std::vector<poplar::Tensor> columns;
  for (std::size_t n = 0; n < division.plan.n_parts; ++n) {
    std::vector<poplar::Tensor> column;
    for (std::size_t k = 0; k < division.plan.k_parts; ++k) {
      std::vector<unsigned> tiles;
      for (std::size_t m = 0; m < division.plan.m_parts; ++m) tiles.push_back(division.tile(m, k, n));
      for (std::size_t step = 0; step < division.plan.steps(); ++step) {
        const std::size_t depth = division.depth(k, step).size();
        column.push_back(addBlock(graph, type, division.columns(n).size(), depth, tiles, debug).transpose());
      }
    }
    columns.push_back(poplar::concat(column, 0));
  }
  return poplar::concat(columns, 1);
}

// Sums of each part of the depth, block by block.
class Sums {
 public:
  Sums(poplar::Graph& graph, const poplar::Type& type, const Division& division, const poplar::DebugContext& debug)
      : division_(division) {
    for (std::size_t k = 0; k < division.plan.k_parts; ++k) {
      forEach([&](std::size_t m, std::size_t n) {
        blocks_.push_back(addBlock(graph, type, division.rows(m).size(), division.columns(n).size(),
                                   {division.tile(m, k, n)}, debug));
      });
    }
  }

  template <class Body>
  void forEach(Body&& body) const {
    for (std::size_t m = 0; m < division_.plan.m_parts; ++m) {
      for (std::size_t n = 0; n < division_.plan.n_parts; ++n) body(m, n);
    }
  }
  const poplar::Tensor& block(std::size_t m, std::size_t k, std::size_t n) const {
    return blocks_[(k * division_.plan.m_parts + m) * division_.plan.n_parts + n];
  }
  // Blocks of all sums, or others in their order, as one matrix.
  poplar::Tensor assembled(const std::vector<poplar::Tensor>& blocks) const {
    std::vector<poplar::Tensor> rows;
    for (auto first = blocks.begin(); first != blocks.end();) {
      const auto last = first + static_cast<std::ptrdiff_t>(division_.plan.n_parts);
      rows.push_back(poplar::concat(std::vector<poplar::Tensor>(first, last), 1));
      first = last;
    }
    return poplar::concat(rows, 0);
  }
  const std::vector<poplar::Tensor>& blocks() const { return blocks_; }

 private:
  const Division& division_;
  std::vector<poplar::Tensor> blocks_;
};

// A block of an operand {rows, columns} as a vertex takes it: in the order in which it lies in fewer pieces.
struct Operand {
  poplar::Tensor flat;
  bool across;

  explicit Operand(const poplar::Tensor& block) {
    const auto pieces = [&](const poplar::Tensor& part, std::size_t parts) {
      return parts * part.getContiguousRegions().size();
    };
    const poplar::Tensor transposed = block.transpose();
    across =
        !block.flatten().isContiguous() && pieces(transposed[0], transposed.dim(0)) < pieces(block[0], block.dim(0));
    flat = (across ? transposed : block).flatten();
  }
};

void addProduct(poplar::Graph& graph, const poplar::ComputeSet& cs, const Division& division, const Operand& a,
                const Operand& b, const poplar::Tensor& to, std::size_t depth, unsigned tile, bool accumulate) {
  const poplar::VertexRef vertex =
      graph.addVertex(cs, poputil::templateVertex("snnjax::MatrixProduct", a.flat.elementType(), to.elementType()),
                      {{"a", a.flat}, {"b", b.flat}, {"out", to.flatten()}});
  // The unit wants the depth innermost.
  const std::size_t transposed = (a.across ? a.flat.numElements() : 0) + (b.across ? 0 : b.flat.numElements());
  graph.setInitialValue(vertex["rows"], static_cast<unsigned>(to.dim(0)));
  graph.setInitialValue(vertex["depth"], static_cast<unsigned>(depth));
  graph.setInitialValue(vertex["columns"], static_cast<unsigned>(to.dim(1)));
  graph.setInitialValue(vertex["a_across"], a.across);
  graph.setInitialValue(vertex["b_deep"], b.across);
  graph.setInitialValue(vertex["holds_a"], division.plan.holds_lhs);
  graph.setInitialValue(vertex["transposed"], static_cast<unsigned>(depth > 1 ? transposed : 0));
  graph.setInitialValue(vertex["accumulate"], accumulate);
  graph.setTileMapping(vertex, tile);
}

void addProducts(poplar::Graph& graph, const poplar::Tensor& a, const poplar::Tensor& b, const Sums& sums,
                 const Division& division, poplar::program::Sequence& prog, const poplar::DebugContext& debug) {
  for (std::size_t step = 0; step < division.plan.steps(); ++step) {
    const poplar::ComputeSet cs = graph.addComputeSet({debug, "products"});
    for (std::size_t k = 0; k < division.plan.k_parts; ++k) {
      const poplar::Interval depth = division.depth(k, step);
      if (depth.size() == 0) continue;
      sums.forEach([&](std::size_t m, std::size_t n) {
        addProduct(graph, cs, division, Operand(a.slice(division.rows(m), 0).slice(depth, 1)),
                   Operand(b.slice(depth, 0).slice(division.columns(n), 1)), sums.block(m, k, n), depth.size(),
                   division.tile(m, k, n), step > 0);
      });
    }
    prog.add(poplar::program::Execute(cs, debug));
  }
}

// The tiles of a block share its elements.
poplar::Tensor addUp(poplar::Graph& graph, const Sums& sums, const Division& division, const poplar::Type& type,
                     poplar::program::Sequence& prog, const poplar::DebugContext& debug) {
  const poplar::ComputeSet cs = graph.addComputeSet({debug, "sums"});
  const std::size_t parts = division.plan.k_parts;
  std::vector<poplar::Tensor> blocks;
  sums.forEach([&](std::size_t m, std::size_t n) {
    std::vector<unsigned> tiles;
    for (std::size_t k = 0; k < parts; ++k) tiles.push_back(division.tile(m, k, n));
    const poplar::Tensor& first = sums.block(m, 0, n);
    blocks.push_back(addBlock(graph, type, first.dim(0), first.dim(1), tiles, {debug, "out"}));
    const poplar::Tensor out = blocks.back().flatten();
    const auto& mapping = graph.getTileMapping(out);
    for (const unsigned tile : tiles) {
      for (const poplar::Interval& share : mapping[tile]) {
        std::vector<poplar::Tensor> of_parts;
        for (std::size_t k = 0; k < parts; ++k) of_parts.push_back(sums.block(m, k, n).flatten().slice(share));
        const poplar::VertexRef vertex =
            graph.addVertex(cs, poputil::templateVertex("snnjax::SumPartials", first.elementType(), type),
                            {{"in", poplar::concat(of_parts)}, {"out", out.slice(share)}});
        graph.setInitialValue(vertex["parts"], static_cast<unsigned>(parts));
        graph.setInitialValue(vertex["count"], static_cast<unsigned>(share.size()));
        graph.setTileMapping(vertex, tile);
      }
    }
  });
  prog.add(poplar::program::Execute(cs, debug));
  return sums.assembled(blocks);
}

poplar::Type partialsType(const poplar::Type& input, const poplar::OptionFlags& options) {
  const bool half = options.contains("partialsType") && options.at("partialsType") == "half";
  return half && input == poplar::HALF ? poplar::HALF : poplar::FLOAT;
}

void checkTypes(const poplar::Tensor& a, const poplar::Tensor& b) {
  const poplar::Type type = a.elementType();
  if (type == b.elementType() && (type == poplar::FLOAT || type == poplar::HALF)) return;
  throw poputil::poplibs_error("poplin::matMul: `a, b` must be both float or both half, got " + type.toString() +
                               " and " + b.elementType().toString() + ". Cast them.");
}

}  // namespace

poplar::Tensor matMul(poplar::Graph& graph, const poplar::Tensor& a, const poplar::Tensor& b,
                      poplar::program::Sequence& prog, const poplar::Type& output_type,
                      const poplar::DebugContext& debug, const poplar::OptionFlags& options, PlanningCache*) {
  checkTypes(a, b);
  const Division division(graph, a.elementType(), a.shape(), b.shape(), "matMul", options);
  if (division.empty()) {
    const poplar::Tensor out = onTileZero(graph, output_type, {division.m, division.n}, debug);
    popops::zero(graph, out, prog, debug);
    return out;
  }
  const poplar::Type type = partialsType(a.elementType(), options);
  const Sums sums(graph, type, division, {debug, "sums"});
  addProducts(graph, a, b, sums, division, prog, debug);
  if (division.plan.k_parts == 1 && type == output_type) return sums.assembled(sums.blocks());
  return addUp(graph, sums, division, output_type, prog, debug);
}

poplar::Tensor matMul(poplar::Graph& graph, const poplar::Tensor& a, const poplar::Tensor& b,
                      poplar::program::Sequence& prog, const poplar::DebugContext& debug,
                      const poplar::OptionFlags& options, PlanningCache* cache) {
  return matMul(graph, a, b, prog, a.elementType(), debug, options, cache);
}

void matMulWithOutput(poplar::Graph& graph, const poplar::Tensor& a, const poplar::Tensor& b, poplar::Tensor& out,
                      poplar::program::Sequence& prog, const poplar::DebugContext& debug,
                      const poplar::OptionFlags& options, PlanningCache* cache) {
  const poplar::Tensor product = matMul(graph, a, b, prog, out.elementType(), debug, options, cache);
  prog.add(poplar::program::Copy(product, out, false, debug));
}

poplar::Tensor createMatMulInputLHS(poplar::Graph& graph, const poplar::Type& input_type, const poplar::Type&,
                                    const Shape& a_shape, const Shape& b_shape, const poplar::DebugContext& debug,
                                    const poplar::OptionFlags& options, PlanningCache*) {
  return leftOperand(graph, input_type, {graph, input_type, a_shape, b_shape, "createMatMulInputLHS", options}, debug);
}

poplar::Tensor createMatMulInputLHS(poplar::Graph& graph, const poplar::Type& type, const Shape& a_shape,
                                    const Shape& b_shape, const poplar::DebugContext& debug,
                                    const poplar::OptionFlags& options, PlanningCache* cache) {
  return createMatMulInputLHS(graph, type, type, a_shape, b_shape, debug, options, cache);
}

poplar::Tensor createMatMulInputRHS(poplar::Graph& graph, const poplar::Type& input_type, const poplar::Type&,
                                    const Shape& a_shape, const Shape& b_shape, const poplar::DebugContext& debug,
                                    const poplar::OptionFlags& options, PlanningCache*) {
  return rightOperand(graph, input_type, {graph, input_type, a_shape, b_shape, "createMatMulInputRHS", options}, debug);
}

poplar::Tensor createMatMulInputRHS(poplar::Graph& graph, const poplar::Type& type, const Shape& a_shape,
                                    const Shape& b_shape, const poplar::DebugContext& debug,
                                    const poplar::OptionFlags& options, PlanningCache* cache) {
  return createMatMulInputRHS(graph, type, type, a_shape, b_shape, debug, options, cache);
}

}  // namespace poplin
