// Sets all elements to one value, on the tiles they lie on.
#pragma once

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Interval.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <type_traits>
#include <vector>

namespace popops {
namespace detail {
void fill(poplar::Graph& graph, const poplar::Tensor& t, const std::vector<std::vector<poplar::Interval>>& mapping,
          poplar::ComputeSet cs, double value);
}

// `value` is converted to the element type of the tensor.
template <typename FillValueType, typename = typename std::enable_if<std::is_arithmetic<FillValueType>::value>::type>
void fill(poplar::Graph& graph, const poplar::Tensor& t, const std::vector<std::vector<poplar::Interval>>& mapping,
          poplar::ComputeSet cs, FillValueType value) {
  detail::fill(graph, t, mapping, cs, static_cast<double>(value));
}

template <typename FillValueType, typename = typename std::enable_if<std::is_arithmetic<FillValueType>::value>::type>
void fill(poplar::Graph& graph, const poplar::Tensor& t, poplar::program::Sequence& prog, FillValueType value,
          const poplar::DebugContext& debug = {}) {
  const poplar::ComputeSet cs = graph.addComputeSet({debug, "fill"});
  fill(graph, t, graph.getTileMapping(t), cs, value);
  prog.add(poplar::program::Execute(cs));
}

}  // namespace popops
