// Checks of operations with indices that are known at run time only: those of StableHLO's specification.
#include "executor/plan/operation_check.hpp"

namespace snnjax::executor {
namespace {

void checkStarts(const OperationCheck& op, std::size_t first, std::size_t rank) {
  op.need(op.numInputs() == first + rank, "have a start for each dimension");
  for (std::size_t i = first; i < op.numInputs(); ++i) {
    op.needIndex(op.input(i));
    op.need(op.input(i).numElements() == 1, "have starts of one element");
  }
}

void needWithin(const OperationCheck& op, const Shape& part, const Shape& whole) {
  op.need(part.size() == whole.size(), "keep the rank");
  for (std::size_t d = 0; d < part.size(); ++d) op.need(part[d] <= whole[d], "have parts not larger than the array");
}

void checkDynamicSlice(const OperationCheck& op) {
  op.need(op.numInputs() > 0 && op.numOutputs() == 1 && !op.instruction().ints.empty(), "have an array and sizes");
  const Shape& shape = op.input(0).shape;
  checkStarts(op, 1, shape.size());
  const Shape sizes = op.sizes(0, shape.size());
  needWithin(op, sizes, shape);
  op.needSameDtype(op.input(0), op.output());
  op.needOutput(sizes);
}

void checkDynamicUpdate(const OperationCheck& op) {
  op.need(op.numInputs() > 1 && op.numOutputs() == 1, "have an array and an update");
  checkStarts(op, 2, op.input(0).shape.size());
  needWithin(op, op.input(1).shape, op.input(0).shape);
  op.needSameDtype(op.input(0), op.input(1));
  op.need(op.input(0) == op.output(), "keep the type");
}

// What gather and scatter say of an array, its windows and the indices.
struct Windows {
  Shape offset, collapsed, operand_batching, indices_batching, map;
  std::size_t vector_dim = 0;
  Shape batch;  // sizes of the indices but for those of a vector
};

Windows windowsOf(const OperationCheck& op, const Shape& operand, const Shape& indices, std::size_t result_rank) {
  Windows windows;
  windows.offset = op.dimensions(0, result_rank);
  windows.collapsed = op.dimensions(1, operand.size());
  windows.operand_batching = op.dimensions(2, operand.size());
  windows.indices_batching = op.dimensions(3, indices.size());
  windows.map = op.dimensions(4, operand.size());
  windows.vector_dim = op.number(5, indices.size() + 1);
  const std::size_t vector = windows.vector_dim < indices.size() ? indices[windows.vector_dim] : 1;
  op.need(windows.map.size() == vector, "map each number of an index to a dimension");
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

// The shape of gather's result, of scatter's updates.
Shape windowed(const Windows& windows, const Shape& window, std::size_t rank) {
  Shape shape;
  std::size_t of_window = 0, of_batch = 0;
  for (std::size_t d = 0; d < rank; ++d) {
    shape.push_back(holds(windows.offset, d) ? window[of_window++] : windows.batch[of_batch++]);
  }
  return shape;
}

Shape goneFrom(const Windows& windows) {
  Shape gone = windows.collapsed;
  gone.insert(gone.end(), windows.operand_batching.begin(), windows.operand_batching.end());
  return gone;
}

void checkGather(const OperationCheck& op) {
  op.needCounts(2, 1, 7);
  op.needSameDtype(op.input(0), op.output());
  op.needIndex(op.input(1));
  const Shape& operand = op.input(0).shape;
  const std::size_t rank = op.output().shape.size();
  const Windows windows = windowsOf(op, operand, op.input(1).shape, rank);
  const Shape sizes = op.sizes(6, operand.size());
  needWithin(op, sizes, operand);
  for (const std::size_t d : goneFrom(windows)) op.need(sizes[d] <= 1, "drop dimensions of one element only");
  op.needOutput(windowed(windows, without(sizes, goneFrom(windows)), rank));
}

void checkScatter(const OperationCheck& op) {
  op.needCounts(3, 1, 6);
  op.need(!op.instruction().texts.empty(), "have a kind");
  if (op.instruction().texts[0] != "set") op.needKind(0);
  op.need(op.input(0) == op.output(), "keep the type");
  op.needSameDtype(op.input(0), op.input(2));
  op.needIndex(op.input(1));
  const Shape& operand = op.input(0).shape;
  const Shape& updates = op.input(2).shape;
  const Windows windows = windowsOf(op, operand, op.input(1).shape, updates.size());
  Shape window;
  for (const std::size_t d : windows.offset) window.push_back(updates[d]);
  needWithin(op, window, without(operand, goneFrom(windows)));
  op.need(updates == windowed(windows, window, updates.size()), "have updates for each index");
}

}  // namespace

std::vector<CheckOf> checksOfIndexing() {
  return {{"dynamic_slice", checkDynamicSlice},
          {"dynamic_update_slice", checkDynamicUpdate},
          {"gather", checkGather},
          {"scatter", checkScatter}};
}

}  // namespace snnjax::executor
