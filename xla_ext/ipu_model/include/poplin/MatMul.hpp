// Matrix products. Rows, columns and the common dimension are divided among the tiles by modelled cost, in steps of the
// common one where operands would not fit; partial sums are float unless the option partialsType says half.
#pragma once

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <vector>

namespace poplin {

// In Poplar, shared by calls to save planning; planning is cheap here, so it holds nothing.
class PlanningCache {};
namespace matmul {
using PlanningCache = poplin::PlanningCache;
}

// a {m, k} times b {k, n}. Options: "partialsType" ("float" or "half") and "availableMemoryProportion"
// (0.6: of a tile's memory, what operands brought to it and partial sums may take); Poplar's other options are accepted
// and ignored.
poplar::Tensor matMul(poplar::Graph& graph, const poplar::Tensor& a, const poplar::Tensor& b,
                      poplar::program::Sequence& prog, const poplar::Type& output_type,
                      const poplar::DebugContext& debug = {}, const poplar::OptionFlags& options = {},
                      PlanningCache* cache = nullptr);
poplar::Tensor matMul(poplar::Graph& graph, const poplar::Tensor& a, const poplar::Tensor& b,
                      poplar::program::Sequence& prog, const poplar::DebugContext& debug = {},
                      const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);
void matMulWithOutput(poplar::Graph& graph, const poplar::Tensor& a, const poplar::Tensor& b, poplar::Tensor& out,
                      poplar::program::Sequence& prog, const poplar::DebugContext& debug = {},
                      const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);

// Operands in the layout that the product of these shapes needs.
poplar::Tensor createMatMulInputLHS(poplar::Graph& graph, const poplar::Type& input_type,
                                    const poplar::Type& output_type, const std::vector<std::size_t>& a_shape,
                                    const std::vector<std::size_t>& b_shape, const poplar::DebugContext& debug,
                                    const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);
poplar::Tensor createMatMulInputLHS(poplar::Graph& graph, const poplar::Type& type,
                                    const std::vector<std::size_t>& a_shape, const std::vector<std::size_t>& b_shape,
                                    const poplar::DebugContext& debug, const poplar::OptionFlags& options = {},
                                    PlanningCache* cache = nullptr);
poplar::Tensor createMatMulInputRHS(poplar::Graph& graph, const poplar::Type& input_type,
                                    const poplar::Type& output_type, const std::vector<std::size_t>& a_shape,
                                    const std::vector<std::size_t>& b_shape, const poplar::DebugContext& debug,
                                    const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);
poplar::Tensor createMatMulInputRHS(poplar::Graph& graph, const poplar::Type& type,
                                    const std::vector<std::size_t>& a_shape, const std::vector<std::size_t>& b_shape,
                                    const poplar::DebugContext& debug, const poplar::OptionFlags& options = {},
                                    PlanningCache* cache = nullptr);

}  // namespace poplin
