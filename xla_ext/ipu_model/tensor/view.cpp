#include "tensor/view.hpp"

#include <algorithm>
#include <poplar/exceptions.hpp>
#include <sstream>

namespace ipu_model {
namespace {

struct Dimension {
  std::size_t size;
  std::ptrdiff_t stride;
};

// Without dimensions of size 1; neighbours that count on from each other are one. Never empty.
std::vector<Dimension> collapsed(const View& view) {
  std::vector<Dimension> result;
  for (std::size_t d = 0; d < view.shape.size(); ++d) {
    if (view.shape[d] == 1) continue;
    const auto extent = static_cast<std::ptrdiff_t>(view.shape[d]) * view.strides[d];
    if (!result.empty() && result.back().stride == extent) {
      result.back() = {result.back().size * view.shape[d], view.strides[d]};
    } else {
      result.push_back({view.shape[d], view.strides[d]});
    }
  }
  if (result.empty()) result.push_back({1, 1});
  return result;
}

// Strides of `shape` that see the same elements in the same order as `view`, or nothing if there are none.
bool stridesFor(const View& view, const std::vector<std::size_t>& shape, std::vector<std::ptrdiff_t>& strides) {
  const std::vector<Dimension> old = collapsed(view);
  strides.assign(shape.size(), 0);
  std::size_t next = old.size();  // dimensions of the old shape are used up from the last one
  std::size_t left = 1;           // elements of the current one that are not yet spread over new dimensions
  std::ptrdiff_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 1) continue;
    if (left == 1) {
      if (next == 0) return false;
      left = old[--next].size;
      stride = old[next].stride;
    }
    if (left % shape[d] != 0) return false;
    strides[d] = stride;
    stride *= static_cast<std::ptrdiff_t>(shape[d]);
    left /= shape[d];
  }
  return true;
}

}  // namespace

void appendRun(std::vector<Run>& runs, Run run) {
  if (run.count == 0) return;
  if (run.count == 1) run.stride = 1;
  if (!runs.empty() && runs.back().variable == run.variable) {
    Run& last = runs.back();
    const bool same_stride = last.stride == run.stride || run.count == 1 || (last.count == 1 && run.stride == 1);
    const std::ptrdiff_t stride = run.count == 1 ? last.stride : run.stride;
    if (same_stride && last.begin + last.count * static_cast<std::size_t>(stride) == run.begin) {
      last.count += run.count;
      last.stride = stride;
      return;
    }
  }
  runs.push_back(run);
}

Source::Source(std::vector<Run> runs) : runs_(std::move(runs)) {
  starts_.reserve(runs_.size() + 1);
  starts_.push_back(0);
  for (const Run& run : runs_) starts_.push_back(starts_.back() + run.count);
}

void Source::append(std::size_t first, std::size_t count, std::ptrdiff_t step, std::vector<Run>& out) const {
  std::size_t run = 0;
  auto index = static_cast<std::ptrdiff_t>(first);
  while (count > 0) {
    const auto at = static_cast<std::size_t>(index);
    if (at < starts_[run] || at >= starts_[run + 1]) {
      const bool next = run + 2 < starts_.size() && at >= starts_[run + 1] && at < starts_[run + 2];
      run = next ? run + 1
                 : static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), at) - starts_.begin()) - 1;
    }
    std::size_t taken = count;
    if (step > 0) taken = std::min(count, (starts_[run + 1] - at - 1) / static_cast<std::size_t>(step) + 1);
    if (step < 0) taken = std::min(count, (at - starts_[run]) / static_cast<std::size_t>(-step) + 1);
    const Run& of = runs_[run];
    appendRun(out, {of.variable, of.at(at - starts_[run]), taken, step * of.stride});
    index += static_cast<std::ptrdiff_t>(taken) * step;
    count -= taken;
  }
}

std::size_t View::elements() const {
  std::size_t product = 1;
  for (const std::size_t size : shape) product *= size;
  return product;
}

std::vector<Run> View::runs() const {
  std::vector<Run> result;
  if (elements() == 0) return result;
  const std::vector<Dimension> dimensions = collapsed(*this);
  const Dimension inner = dimensions.back();
  std::vector<std::size_t> index(dimensions.size(), 0);
  std::ptrdiff_t first = offset;
  while (true) {
    source->append(static_cast<std::size_t>(first), inner.size, inner.stride, result);
    std::size_t d = dimensions.size() - 1;
    while (d > 0) {
      --d;
      first += dimensions[d].stride;
      if (++index[d] < dimensions[d].size) break;
      first -= static_cast<std::ptrdiff_t>(dimensions[d].size) * dimensions[d].stride;
      index[d] = 0;
      if (d == 0) return result;
    }
    if (dimensions.size() == 1) return result;
  }
}

std::vector<std::ptrdiff_t> rowMajorStrides(std::span<const std::size_t> shape) {
  std::vector<std::ptrdiff_t> strides(shape.size());
  std::ptrdiff_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= static_cast<std::ptrdiff_t>(shape[d]);
  }
  return strides;
}

Views viewOfRuns(GraphData* graph, poplar::Type type, std::vector<Run> runs, std::vector<std::size_t> shape) {
  auto view = std::make_shared<View>();
  view->graph = graph;
  view->source = std::make_shared<const Source>(std::move(runs));
  view->type = type;
  view->strides = rowMajorStrides(shape);
  view->shape = std::move(shape);
  return view;
}

Views reshaped(const View& view, std::vector<std::size_t> shape) {
  std::vector<std::ptrdiff_t> strides;
  if (view.elements() != 0 && !stridesFor(view, shape, strides)) {
    return viewOfRuns(view.graph, view.type, view.runs(), std::move(shape));
  }
  auto result = std::make_shared<View>(view);
  result->strides = view.elements() == 0 ? rowMajorStrides(shape) : std::move(strides);
  result->shape = std::move(shape);
  return result;
}

const View& viewOf(const poplar::Tensor& tensor) {
  if (!tensor.valid()) {
    throw poplar::poplar_error(
        "Tensor: `tensor` must belong to a graph, got one made by Tensor(). Assign the result of addVariable to it.");
  }
  return *tensor.view();
}

std::string toString(std::span<const std::size_t> shape) {
  std::ostringstream text;
  text << '{';
  for (std::size_t d = 0; d < shape.size(); ++d) text << (d == 0 ? "" : ",") << shape[d];
  text << '}';
  return text.str();
}

}  // namespace ipu_model
