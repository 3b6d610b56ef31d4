// Matrix products out of one Dot vertex a tile.
#include <poplin/MatMul.hpp>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>
#include <popops/ScaledAdd.hpp>
#include <popops/Zero.hpp>
#include <poputil/Util.hpp>
#include <poputil/VertexTemplates.hpp>
#include <poputil/exceptions.hpp>

#include "poplibs/poplin/matmul_plan.hpp"
#include "poplibs/popops/per_tile.hpp"

namespace poplin {
namespace {

using poplibs::MatMulPlan;
using Shape = std::vector<std::size_t>;

MatMulPlan planFor(const poplar::Graph& graph, const Shape& a, const Shape& b, const char* function) {
  if (a.size() != 2 || b.size() != 2 || a[1] != b[0]) {
    throw poputil::poplibs_error("poplin::" + std::string(function) + ": `a, b` must be {m, k} and {k, n}, got " +
                                 poplibs::toString(a) + " and " + poplibs::toString(b) + ". Reshape or transpose one.");
  }
  return poplibs::planMatMul({a[0], a[1], b[1]}, graph.getTarget().getNumTiles());
}

// A variable for one block, its elements spread over the tiles that need it.
poplar::Tensor addBlock(poplar::Graph& graph, const poplar::Type& type, std::size_t rows, std::size_t columns,
                        const std::vector<unsigned>& tiles, const poplar::DebugContext& debug) {
  const poplar::Tensor block = graph.addVariable(type, {rows, columns}, debug);
  const auto width = static_cast<unsigned>(graph.getTarget().getVectorWidth(type));
  const auto parts =
      poputil::splitRegions(poputil::Regions{{0, rows * columns}}, width, static_cast<unsigned>(tiles.size()));
  poplibs::Mapping mapping(graph.getTarget().getNumTiles());
  for (std::size_t i = 0; i < parts.size(); ++i) mapping[tiles[i]] = parts[i];
  graph.setTileMapping(block, mapping);
  return block;
}

// Blocks, row by row, as one matrix.
poplar::Tensor assemble(const std::vector<std::vector<poplar::Tensor>>& blocks) {
  std::vector<poplar::Tensor> rows;
  for (const auto& row : blocks) rows.push_back(poplar::concat(row, 1));
  return poplar::concat(rows, 0);
}

poplar::Tensor leftOperand(poplar::Graph& graph, const poplar::Type& type, const MatMulPlan& plan,
                           const poplar::DebugContext& debug) {
  std::vector<std::vector<poplar::Tensor>> blocks(plan.parts_m);
  for (std::size_t m = 0; m < plan.parts_m; ++m) {
    for (std::size_t k = 0; k < plan.parts_k; ++k) {
      std::vector<unsigned> tiles;
      for (std::size_t n = 0; n < plan.parts_n; ++n) tiles.push_back(plan.tile(m, k, n));
      blocks[m].push_back(addBlock(graph, type, plan.rows(m).size(), plan.depth(k).size(), tiles, debug));
    }
  }
  return assemble(blocks);
}

poplar::Tensor rightOperand(poplar::Graph& graph, const poplar::Type& type, const MatMulPlan& plan,
                            const poplar::DebugContext& debug) {
  std::vector<std::vector<poplar::Tensor>> blocks(plan.parts_k);
  for (std::size_t k = 0; k < plan.parts_k; ++k) {
    for (std::size_t n = 0; n < plan.parts_n; ++n) {
      std::vector<unsigned> tiles;
      for (std::size_t m = 0; m < plan.parts_m; ++m) tiles.push_back(plan.tile(m, k, n));
      blocks[k].push_back(addBlock(graph, type, plan.depth(k).size(), plan.columns(n).size(), tiles, debug));
    }
  }
  return assemble(blocks);
}

// The output, or its partial sums of part k of the depth, each block on the tiles `tilesOf(m, n)`.
template <class TilesOf>
poplar::Tensor resultMatrix(poplar::Graph& graph, const poplar::Type& type, const MatMulPlan& plan, TilesOf tilesOf,
                            const poplar::DebugContext& debug) {
  std::vector<std::vector<poplar::Tensor>> blocks(plan.parts_m);
  for (std::size_t m = 0; m < plan.parts_m; ++m) {
    for (std::size_t n = 0; n < plan.parts_n; ++n) {
      blocks[m].push_back(addBlock(graph, type, plan.rows(m).size(), plan.columns(n).size(), tilesOf(m, n), debug));
    }
  }
  return assemble(blocks);
}

// sums[k] = a[:, part k] * b[part k, :]
void addProducts(poplar::Graph& graph, const poplar::Tensor& a, const poplar::Tensor& b,
                 const std::vector<poplar::Tensor>& sums, const MatMulPlan& plan, poplar::program::Sequence& prog,
                 const poplar::DebugContext& debug) {
  const poplar::ComputeSet cs = graph.addComputeSet({debug, "dot"});
  const std::string codelet = poputil::templateVertex("snnjax::Dot", a.elementType(), sums[0].elementType());
  for (std::size_t k = 0; k < plan.parts_k; ++k) {
    for (std::size_t m = 0; m < plan.parts_m; ++m) {
      for (std::size_t n = 0; n < plan.parts_n; ++n) {
        const auto rows = plan.rows(m), depth = plan.depth(k), columns = plan.columns(n);
        const poplar::VertexRef vertex = graph.addVertex(cs, codelet);
        graph.connect(vertex["a"], a.slice(rows, 0).slice(depth, 1).flatten());
        graph.connect(vertex["b"], b.slice(depth, 0).slice(columns, 1).flatten());
        graph.connect(vertex["out"], sums[k].slice(rows, 0).slice(columns, 1).flatten());
        graph.setInitialValue(vertex["rows"], static_cast<unsigned>(rows.size()));
        graph.setInitialValue(vertex["depth"], static_cast<unsigned>(depth.size()));
        graph.setInitialValue(vertex["columns"], static_cast<unsigned>(columns.size()));
        graph.setInitialValue(vertex["accumulate"], false);
        graph.setTileMapping(vertex, plan.tile(m, k, n));
      }
    }
  }
  prog.add(poplar::program::Execute(cs, debug));
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
  const MatMulPlan plan = planFor(graph, a.shape(), b.shape(), "matMul");
  if (plan.shape.m * plan.shape.k * plan.shape.n == 0) {
    const poplar::Tensor out = graph.addVariable(output_type, {plan.shape.m, plan.shape.n}, debug);
    graph.setTileMapping(out, 0);
    popops::zero(graph, out, prog, debug);
    return out;
  }
  const poplar::Type type = partialsType(a.elementType(), options);
  std::vector<poplar::Tensor> sums;
  for (std::size_t k = 0; k < plan.parts_k; ++k) {
    const auto tileOf = [&](std::size_t m, std::size_t n) { return std::vector<unsigned>{plan.tile(m, k, n)}; };
    sums.push_back(resultMatrix(graph, type, plan, tileOf, {debug, "sums"}));
  }
  addProducts(graph, a, b, sums, plan, prog, debug);
  if (plan.parts_k == 1) {
    return type == output_type ? sums[0] : popops::cast(graph, sums[0], output_type, prog, debug);
  }
  const auto tilesOf = [&](std::size_t m, std::size_t n) {
    std::vector<unsigned> tiles;
    for (std::size_t k = 0; k < plan.parts_k; ++k) tiles.push_back(plan.tile(m, k, n));
    return tiles;
  };
  const poplar::Tensor out = resultMatrix(graph, output_type, plan, tilesOf, {debug, "out"});
  for (poplar::Tensor& sum : sums) sum = sum.expand({0});
  popops::reduceWithOutput(graph, poplar::concat(sums), out, {0}, popops::Operation::ADD, prog, debug);
  return out;
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

void matMulAcc(poplar::Graph& graph, const poplar::Tensor& c, float scale, const poplar::Tensor& a,
               const poplar::Tensor& b, poplar::program::Sequence& prog, const poplar::DebugContext& debug,
               const poplar::OptionFlags& options, PlanningCache* cache) {
  const poplar::Tensor product = matMul(graph, a, b, prog, c.elementType(), debug, options, cache);
  popops::scaledAddTo(graph, c, product, scale, prog, debug);
}

void matMulAcc(poplar::Graph& graph, const poplar::Tensor& c, const poplar::Tensor& scale, const poplar::Tensor& a,
               const poplar::Tensor& b, poplar::program::Sequence& prog, const poplar::DebugContext& debug,
               const poplar::OptionFlags& options, PlanningCache* cache) {
  const poplar::Tensor product = matMul(graph, a, b, prog, c.elementType(), debug, options, cache);
  popops::scaledAddTo(graph, c, product, scale, prog, debug);
}

poplar::Tensor matMulGrouped(poplar::Graph& graph, const poplar::Tensor& a, const poplar::Tensor& b,
                             poplar::program::Sequence& prog, const poplar::Type& output_type,
                             const poplar::DebugContext& debug, const poplar::OptionFlags& options,
                             PlanningCache* cache) {
  if (a.rank() != 3 || b.rank() != 3 || a.dim(0) != b.dim(0)) {
    throw poputil::poplibs_error("poplin::matMulGrouped: `a, b` must be {g, m, k} and {g, k, n}, got " +
                                 poplibs::toString(a.shape()) + " and " + poplibs::toString(b.shape()) +
                                 ". Reshape them.");
  }
  std::vector<poplar::Tensor> products;
  for (std::size_t g = 0; g < a.dim(0); ++g) {
    products.push_back(matMul(graph, a[g], b[g], prog, output_type, debug, options, cache).expand({0}));
  }
  return poplar::concat(products);
}

poplar::Tensor createMatMulInputLHS(poplar::Graph& graph, const poplar::Type& input_type, const poplar::Type&,
                                    const Shape& a_shape, const Shape& b_shape, const poplar::DebugContext& debug,
                                    const poplar::OptionFlags&, PlanningCache*) {
  return leftOperand(graph, input_type, planFor(graph, a_shape, b_shape, "createMatMulInputLHS"), debug);
}

poplar::Tensor createMatMulInputLHS(poplar::Graph& graph, const poplar::Type& type, const Shape& a_shape,
                                    const Shape& b_shape, const poplar::DebugContext& debug,
                                    const poplar::OptionFlags& options, PlanningCache* cache) {
  return createMatMulInputLHS(graph, type, type, a_shape, b_shape, debug, options, cache);
}

poplar::Tensor createMatMulInputRHS(poplar::Graph& graph, const poplar::Type& input_type, const poplar::Type&,
                                    const Shape& a_shape, const Shape& b_shape, const poplar::DebugContext& debug,
                                    const poplar::OptionFlags&, PlanningCache*) {
  return rightOperand(graph, input_type, planFor(graph, a_shape, b_shape, "createMatMulInputRHS"), debug);
}

poplar::Tensor createMatMulInputRHS(poplar::Graph& graph, const poplar::Type& type, const Shape& a_shape,
                                    const Shape& b_shape, const poplar::DebugContext& debug,
                                    const poplar::OptionFlags& options, PlanningCache* cache) {
  return createMatMulInputRHS(graph, type, type, a_shape, b_shape, debug, options, cache);
}

}  // namespace poplin
