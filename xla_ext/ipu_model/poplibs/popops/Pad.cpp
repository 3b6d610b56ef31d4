#include <algorithm>
#include <popops/Pad.hpp>
#include <poputil/exceptions.hpp>

#include "poplibs/popops/per_tile.hpp"

namespace popops {
namespace {

// Without the elements that negative padding takes away.
poplar::Tensor cropped(const poplar::Tensor& t, std::ptrdiff_t& lower, std::ptrdiff_t& upper, unsigned dim) {
  const auto size = static_cast<std::ptrdiff_t>(t.dim(dim));
  const std::ptrdiff_t begin = std::clamp<std::ptrdiff_t>(-lower, 0, size);
  const std::ptrdiff_t end = std::clamp<std::ptrdiff_t>(size + std::min<std::ptrdiff_t>(upper, 0), begin, size);
  lower = std::max<std::ptrdiff_t>(lower, 0);
  upper = std::max<std::ptrdiff_t>(upper, 0);
  return t.slice(static_cast<std::size_t>(begin), static_cast<std::size_t>(end), dim);
}

void checkRank(const poplar::Tensor& t, std::size_t lower, std::size_t upper) {
  if (lower == t.rank() && upper == t.rank()) return;
  throw poputil::poplibs_error("popops::pad: `padding` must have one entry per dimension (" + std::to_string(t.rank()) +
                               "), got " + std::to_string(lower) + " and " + std::to_string(upper) +
                               ". Give 0 for a dimension that stays.");
}

// Element i of the padded dimension is this element of the original.
std::size_t source(std::ptrdiff_t i, std::ptrdiff_t size, padding::Type type) {
  if (type == padding::Type::EDGE || size == 1)
    return static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(i, 0, size - 1));
  const std::ptrdiff_t period = 2 * (size - 1);
  const std::ptrdiff_t place = ((i % period) + period) % period;
  return static_cast<std::size_t>(place < size ? place : period - place);
}

}  // namespace

poplar::Tensor pad(poplar::Graph& graph, const poplar::Tensor& t, std::ptrdiff_t padding_lower,
                   std::ptrdiff_t padding_upper, unsigned dim, float value, padding::MappingMethod) {
  const poplar::Tensor kept = cropped(t, padding_lower, padding_upper, dim);
  const poplar::Tensor scalar = poplibs::constantScalar(graph, t.elementType(), value, "pad");
  const auto border = [&](std::ptrdiff_t size) {
    std::vector<std::size_t> shape = kept.shape();
    std::size_t others = 1;
    for (unsigned d = 0; d < shape.size(); ++d) others *= d == dim ? 1 : shape[d];
    shape[dim] = static_cast<std::size_t>(size);
    return scalar.reshape({1}).broadcast(static_cast<unsigned>(others * shape[dim]), 0).reshape(shape);
  };
  std::vector<poplar::Tensor> parts;
  if (padding_lower > 0) parts.push_back(border(padding_lower));
  parts.push_back(kept);
  if (padding_upper > 0) parts.push_back(border(padding_upper));
  return poplar::concat(parts, dim);
}

poplar::Tensor pad(poplar::Graph& graph, const poplar::Tensor& t, const std::vector<std::ptrdiff_t>& padding_lower,
                   const std::vector<std::ptrdiff_t>& padding_upper, float value, padding::MappingMethod method) {
  checkRank(t, padding_lower.size(), padding_upper.size());
  poplar::Tensor padded = t;
  for (unsigned d = 0; d < t.rank(); ++d) {
    if (padding_lower[d] != 0 || padding_upper[d] != 0) {
      padded = pad(graph, padded, padding_lower[d], padding_upper[d], d, value, method);
    }
  }
  return padded;
}

poplar::Tensor pad(const poplar::Tensor& t, const std::vector<std::ptrdiff_t>& padding_lower,
                   const std::vector<std::ptrdiff_t>& padding_upper, padding::Type type) {
  checkRank(t, padding_lower.size(), padding_upper.size());
  if (type == padding::Type::CONSTANT) {
    throw poputil::poplibs_error(
        "popops::pad: `type` must be EDGE or REFLECT, got CONSTANT. Call the pad that takes a graph and a value.");
  }
  poplar::Tensor padded = t;
  for (unsigned d = 0; d < t.rank(); ++d) {
    const auto size = static_cast<std::ptrdiff_t>(padded.dim(d));
    std::vector<poplar::Tensor> parts;
    for (std::ptrdiff_t i = -padding_lower[d]; i < size + padding_upper[d]; ++i) {
      const std::size_t place = source(i, size, type);
      parts.push_back(padded.slice(place, place + 1, d));
    }
    padded = poplar::concat(parts, d);
  }
  return padded;
}

}  // namespace popops
