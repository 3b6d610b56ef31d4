// Reductions over dimensions of a tensor. Each tile reduces what lies on it; partial results of several tiles are then
// exchanged and reduced on the tiles of the output. Sums of halves are accumulated and exchanged as float.
#pragma once

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <popops/Operation.hpp>
#include <vector>

namespace popops {

// `update` adds to the output instead of overwriting it, `scale` (a scalar of type FLOAT) multiplies what is added or
// written; both with ADD and SQUARE_ADD only.
struct ReduceParams {
  ReduceParams() = default;
  ReduceParams(Operation operation, bool updates = false) : op(operation), update(updates) {}
  ReduceParams(Operation operation, bool updates, poplar::Tensor factor)
      : op(operation), update(updates), useScale(true), scale(factor) {}
  ReduceParams(Operation operation, float constant_scale, bool updates = false) = delete;

  Operation op = Operation::ADD;
  bool update = false;
  bool useScale = false;
  poplar::Tensor scale;
};

// A tensor without the dimensions `dims`. An empty reduction gives the neutral element.
poplar::Tensor reduce(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Type& out_type,
                      const std::vector<std::size_t>& dims, ReduceParams params, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debug = {}, const poplar::OptionFlags& options = {});
poplar::Tensor reduce(poplar::Graph& graph, const poplar::Tensor& in, const std::vector<std::size_t>& dims,
                      ReduceParams params, poplar::program::Sequence& prog, const poplar::DebugContext& debug = {},
                      const poplar::OptionFlags& options = {});

// Into `out`, which keeps its tile mapping, or gets one where it has none.
void reduceWithOutput(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Tensor& out,
                      const std::vector<std::size_t>& dims, ReduceParams params, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debug = {}, const poplar::OptionFlags& options = {});

// Adds the stages of a reduction to compute sets: the first to css[0], and so on; sets that are missing are added. So
// several reductions run side by side. The caller executes the sets in order. Without `update` and `scale`.
poplar::Tensor reduce(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Type& out_type,
                      const std::vector<std::size_t>& dims, ReduceParams params, std::vector<poplar::ComputeSet>& css,
                      const poplar::DebugContext& debug = {}, const poplar::OptionFlags& options = {});
poplar::Tensor reduce(poplar::Graph& graph, const poplar::Tensor& in, const std::vector<std::size_t>& dims,
                      ReduceParams params, std::vector<poplar::ComputeSet>& css, const poplar::DebugContext& debug = {},
                      const poplar::OptionFlags& options = {});
void reduceWithOutput(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Tensor& out,
                      const std::vector<std::size_t>& dims, ReduceParams params, std::vector<poplar::ComputeSet>& css,
                      const poplar::DebugContext& debug = {}, const poplar::OptionFlags& options = {});

struct SingleReduceOp {
  SingleReduceOp(poplar::Tensor in_, std::vector<std::size_t> dims_, ReduceParams params_, poplar::Type in_out_type,
                 std::string debug_name = "")
      : in(in_), dims(dims_), params(params_), useOutType(true), outType(in_out_type), debugName(debug_name) {}
  SingleReduceOp(poplar::Tensor in_, std::vector<std::size_t> dims_, ReduceParams params_, std::string debug_name = "")
      : in(in_), dims(dims_), params(params_), debugName(debug_name) {}

  poplar::Tensor in;
  std::vector<std::size_t> dims;
  ReduceParams params;
  bool useOutType = false;
  poplar::Type outType;
  std::string debugName;
};

// Several reductions, one after the other. `outputs` is empty, and is then filled, or holds one tensor each.
void reduceMany(poplar::Graph& graph, const std::vector<SingleReduceOp>& reductions,
                std::vector<poplar::Tensor>& outputs, poplar::program::Sequence& prog,
                const poplar::DebugContext& debug = {}, const poplar::OptionFlags& options = {});

}  // namespace popops
