// Broadcasting as views, duplicates of tensors.
#include <algorithm>
#include <poputil/Broadcast.hpp>
#include <poputil/Util.hpp>
#include <poputil/exceptions.hpp>

namespace poputil {
namespace {

using Shape = std::vector<std::size_t>;

std::string text(const Shape& shape) {
  std::string result = "{";
  for (const auto size : shape) result += (result.size() > 1 ? "," : "") + std::to_string(size);
  return result + "}";
}

bool matches(const Shape& a, const Shape& b) {
  for (std::size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    const std::size_t x = a[a.size() - i], y = b[b.size() - i];
    if (x != y && x != 1 && y != 1) return false;
  }
  return true;
}

Shape commonShape(const Shape& a, const Shape& b) {
  if (!matches(a, b)) {
    throw poplibs_error("broadcastToMatch: `shapes` must agree or be 1 in every dimension, got " + text(a) + " and " +
                        text(b) + ". Reshape or expand one of the tensors.");
  }
  Shape shape = a.size() >= b.size() ? a : b;
  const Shape& other = a.size() >= b.size() ? b : a;
  for (std::size_t i = 1; i <= other.size(); ++i) {
    std::size_t& size = shape[shape.size() - i];
    if (size == 1) size = other[other.size() - i];
  }
  return shape;
}

}  // namespace

void broadcastToMatch(poplar::Tensor& a, const Shape& shape) {
  if (commonShape(a.shape(), shape) != shape) {
    throw poplibs_error("broadcastToMatch: `a` must fit into shape " + text(shape) + ", got " + text(a.shape()) +
                        ". Reduce it first, or broadcast the other tensor.");
  }
  Shape expanded(shape.size() - a.rank(), 1);
  expanded.insert(expanded.end(), a.shape().begin(), a.shape().end());
  poplar::Tensor view = a.reshape(expanded);
  for (unsigned d = 0; d < shape.size(); ++d) {
    if (view.dim(d) != shape[d]) view = view.broadcast(static_cast<unsigned>(shape[d]), d);
  }
  a = view;
}

void broadcastToMatch(poplar::Tensor& a, poplar::Tensor& b) {
  const Shape shape = commonShape(a.shape(), b.shape());
  broadcastToMatch(a, shape);
  broadcastToMatch(b, shape);
}

void broadcastToMatch(poplar::Tensor& a, poplar::Tensor& b, poplar::Tensor& c) {
  const Shape shape = commonShape(commonShape(a.shape(), b.shape()), c.shape());
  broadcastToMatch(a, shape);
  broadcastToMatch(b, shape);
  broadcastToMatch(c, shape);
}

bool canBroadcastToMatch(const poplar::Tensor& a, const poplar::Tensor& b) { return matches(a.shape(), b.shape()); }

poplar::Tensor duplicate(poplar::Graph& graph, const poplar::Tensor& in, poplar::program::Sequence& prog,
                         const poplar::DebugContext& debug, poplar::TensorCloneMethod method) {
  poplar::Tensor copy = graph.clone(in, debug, method);
  prog.add(poplar::program::Copy(in, copy, false, debug));
  return copy;
}

poplar::Tensor cloneN(poplar::Graph& graph, const poplar::Tensor& t, unsigned count, const poplar::DebugContext& debug,
                      poplar::TensorCloneMethod method) {
  std::vector<poplar::Tensor> clones;
  for (unsigned i = 0; i < count; ++i) clones.push_back(graph.clone(t, debug, method).expand({0}));
  return poplar::concat(clones);
}

}  // namespace poputil
