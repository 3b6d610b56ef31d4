// How a tensor sees variables: strides over runs of elements. No operation on tensors copies elements, and most cost
// a few additions for each dimension, however large the tensor is.
#pragma once

#include <cstddef>
#include <memory>
#include <poplar/Tensor.hpp>
#include <span>
#include <vector>

namespace ipu_model {

struct GraphData;

// Elements begin, begin + stride, begin + 2 stride, ... of one variable; stride 0: the same one, `count` times.
struct Run {
  unsigned variable = 0;
  std::size_t begin = 0;
  std::size_t count = 0;
  std::ptrdiff_t stride = 1;

  std::size_t at(std::size_t index) const {
    return begin + static_cast<std::size_t>(static_cast<std::ptrdiff_t>(index) * stride);
  }
  bool contiguous() const { return stride == 1 || count == 1; }
};

// Runs in a row: what a view counts its elements in.
class Source {
 public:
  explicit Source(std::vector<Run> runs);

  std::size_t size() const { return starts_.back(); }
  // Appends elements first, first + step, ... (`count` of them) to `out`, which merges what follows on.
  void append(std::size_t first, std::size_t count, std::ptrdiff_t step, std::vector<Run>& out) const;

 private:
  std::vector<Run> runs_;
  std::vector<std::size_t> starts_;  // index of each run's first element, and of the end
};

// Appends a run, or lengthens the last one where the new one goes on from it.
void appendRun(std::vector<Run>& runs, Run run);

class View {
 public:
  GraphData* graph = nullptr;
  std::shared_ptr<const Source> source;
  poplar::Type type;
  std::vector<std::size_t> shape;
  std::vector<std::ptrdiff_t> strides;  // in elements of the source
  std::ptrdiff_t offset = 0;            // of the first element

  std::size_t elements() const;
  // In the order of the flattened tensor.
  std::vector<Run> runs() const;
};

using Views = std::shared_ptr<const View>;

// A row-major view of runs.
Views viewOfRuns(GraphData* graph, poplar::Type type, std::vector<Run> runs, std::vector<std::size_t> shape);
std::vector<std::ptrdiff_t> rowMajorStrides(std::span<const std::size_t> shape);
// The view in another shape of as many elements, with runs of its own where strides cannot express it.
Views reshaped(const View& view, std::vector<std::size_t> shape);

// The view of a tensor; throws where it is of no graph.
const View& viewOf(const poplar::Tensor& tensor);

std::string toString(std::span<const std::size_t> shape);

}  // namespace ipu_model
