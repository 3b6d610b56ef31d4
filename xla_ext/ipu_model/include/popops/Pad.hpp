// Tensors with a border.
#pragma once

#include <poplar/Graph.hpp>
#include <poplar/Tensor.hpp>
#include <vector>

namespace popops {
namespace padding {

enum class Type { CONSTANT, EDGE, REFLECT };
enum class MappingMethod { NONE, ZERO, EDGE };

}  // namespace padding

// A view of `t` between padding_lower[d] and padding_upper[d] elements `value` along each dimension d; a negative
// number takes away elements.
poplar::Tensor pad(poplar::Graph& graph, const poplar::Tensor& t, const std::vector<std::ptrdiff_t>& padding_lower,
                   const std::vector<std::ptrdiff_t>& padding_upper, float value = 0.0F,
                   padding::MappingMethod method = padding::MappingMethod::ZERO);
poplar::Tensor pad(poplar::Graph& graph, const poplar::Tensor& t, std::ptrdiff_t padding_lower,
                   std::ptrdiff_t padding_upper, unsigned dim, float value = 0.0F,
                   padding::MappingMethod method = padding::MappingMethod::ZERO);

// The same with elements of `t` itself in the border: those at the edge, or mirrored at it.
poplar::Tensor pad(const poplar::Tensor& t, const std::vector<std::ptrdiff_t>& padding_lower,
                   const std::vector<std::ptrdiff_t>& padding_upper, padding::Type type);

}  // namespace popops
