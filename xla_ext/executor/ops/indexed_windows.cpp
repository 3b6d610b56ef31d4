#include "executor/ops/indexed_windows.hpp"

#include <algorithm>

namespace snnjax::executor::ops {

IndexedWindows windowsOf(const OperationCheck& op, const Shape& operand, const Shape& indices, std::size_t result_rank,
                         std::size_t from_end) {
  IndexedWindows windows;
  windows.offset = op.dimensions(0, result_rank);
  windows.collapsed = op.dimensions(1, operand.size());
  windows.operand_batching = op.dimensions(2, operand.size());
  windows.indices_batching = op.dimensions(3, indices.size());
  windows.map = op.dimensions(4, operand.size());
  windows.vector_dim = op.number(5, indices.size() + 1);
  const std::size_t vector = windows.vector_dim < indices.size() ? indices[windows.vector_dim] : 1;
  op.need(windows.map.size() == vector, "map each number of an index to a dimension");
  const Shape ends = op.sizes(from_end, vector);
  for (std::size_t i = 0; i < vector; ++i) {
    op.need(ends[i] == 0 || ends[i] == operand[windows.map[i]], "count starts below 0 from the end of a dimension");
  }
  op.need(std::is_sorted(windows.offset.begin(), windows.offset.end()), "have window dimensions in order");
  op.need(windows.operand_batching.size() == windows.indices_batching.size(), "pair dimensions of batches");
  op.need(windows.offset.size() + windows.collapsed.size() + windows.operand_batching.size() == operand.size(),
          "have windows of the array's rank");
  for (std::size_t i = 0; i < windows.operand_batching.size(); ++i) {
    const std::size_t d = windows.operand_batching[i], e = windows.indices_batching[i];
    op.need(operand[d] == indices[e] && e != windows.vector_dim, "pair dimensions of batches of one size");
    op.need(!holds(windows.collapsed, d) && !holds(windows.map, d), "index no dimension of a batch");
  }
  windows.batch = without(indices, {windows.vector_dim});
  op.need(windows.batch.size() + windows.offset.size() == result_rank, "have a window for each index");
  return windows;
}

Shape IndexedWindows::shapeOf(const Shape& window, std::size_t rank) const {
  Shape shape;
  std::size_t of_window = 0, of_batch = 0;
  for (std::size_t d = 0; d < rank; ++d) shape.push_back(holds(offset, d) ? window[of_window++] : batch[of_batch++]);
  return shape;
}

Shape IndexedWindows::gone() const {
  Shape dimensions = collapsed;
  dimensions.insert(dimensions.end(), operand_batching.begin(), operand_batching.end());
  return dimensions;
}

}  // namespace snnjax::executor::ops
