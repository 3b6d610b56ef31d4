// Windows at a position known only at run time. Every tile keeps its part of all rows along the sliced dimension, so
// that a slice of the leading one, as in loops over time, never leaves its tile.
#include <poputil/VertexTemplates.hpp>

#include "executor/operations.hpp"
#include "executor/ops/compute_step.hpp"

namespace snnjax::executor::ops {
namespace {

void checkStarts(const OperationCheck& op, std::size_t first, std::size_t rank) {
  op.need(op.numInputs() == first + rank, "have a start for each dimension");
  for (std::size_t i = first; i < op.numInputs(); ++i) {
    op.needIndex(op.input(i));
    op.need(op.input(i).numElements() == 1, "have starts of one element");
  }
}

void checkDynamicSlice(const OperationCheck& op) {
  op.need(op.numInputs() > 0 && op.numOutputs() == 1 && !op.instruction().ints.empty(), "have an array and sizes");
  const Shape& shape = op.input(0).shape;
  checkStarts(op, 1, shape.size());
  const Shape sizes = op.sizes(0, shape.size());
  op.needWithin(sizes, shape);
  op.needSameDtype(op.input(0), op.output());
  op.needOutput(sizes);
}

void checkDynamicUpdate(const OperationCheck& op) {
  op.need(op.numInputs() > 1 && op.numOutputs() == 1, "have an array and an update");
  checkStarts(op, 2, op.input(0).shape.size());
  op.needWithin(op.input(1).shape, op.input(0).shape);
  op.needSameDtype(op.input(0), op.input(1));
  op.need(op.input(0) == op.output(), "keep the type");
}

struct Window {
  unsigned dimension;
  poplar::Tensor start;  // one unsigned
};

class Windows {
 public:
  Windows(Lowering& lowering, const Instruction& instruction, std::size_t first_start)
      : lowering_(lowering), whole_(lowering.type(instruction.inputs[0]).shape) {
    for (std::size_t d = 0; d < whole_.size(); ++d) starts_.push_back(instruction.inputs[first_start + d]);
  }

  // The dimensions that are cut, in order.
  std::vector<Window> of(const Shape& part) {
    std::vector<Window> windows;
    for (unsigned d = 0; d < whole_.size(); ++d) {
      if (part[d] == whole_[d]) continue;
      is_signed_ = lowering_.type(starts_[d]).dtype == Dtype::kInt32;
      windows.push_back({d, asBits(lowering_.get(starts_[d])).reshape({})});
    }
    return windows;
  }

  // Rows of `table` along a dimension that begin at the start, to or from `rows`.
  void move(const poplar::Tensor& table, const poplar::Tensor& rows, const Window& window, bool update) const {
    const std::string codelet =
        poputil::templateVertex(update ? "snnjax::UpdateWindow" : "snnjax::SliceWindow", bitsOf(table.elementType()));
    const std::size_t of_table = table.dim(window.dimension), of_rows = rows.dim(window.dimension);
    const Parts tables = partsOf(table, window.dimension), windows = partsOf(rows, window.dimension);
    ComputeStep step(lowering_, update ? "update" : "slice");
    for (std::size_t tile = 0; tile < tables.size(); ++tile) {
      if (!tables[tile].valid()) continue;
      step.add(codelet, tile,
               {{"table", tables[tile]},
                {"start", window.start},
                {update ? "values" : "out", windows[tile]},
                {"rows", asUnsigned(of_table)},
                {"width", asUnsigned(tables[tile].numElements() / of_table)},
                {"count", asUnsigned(of_rows)},
                {"is_signed", is_signed_}});
    }
    step.execute();
  }

  poplar::Tensor temporary(const poplar::Tensor& like, unsigned dimension, std::size_t size) const {
    Shape shape = like.shape();
    shape[dimension] = size;
    return lowering_.makeTemporary(like.elementType(), shape);
  }

 private:
  using Parts = std::vector<poplar::Tensor>;

  // For each tile {size of the dimension, elements of the rest that the tile holds}, flat.
  Parts partsOf(const poplar::Tensor& tensor, unsigned dimension) const {
    const Layouts& layouts = lowering_.layouts();
    const poplar::Tensor bits = asBits(tensor);
    const std::size_t size = tensor.dim(dimension);
    Shape rest = tensor.shape();
    rest.erase(rest.begin() + dimension);
    const std::vector<std::size_t>& cuts = layouts.cuts(rest);
    const poplar::Tensor rolled = bits.dimRoll(dimension, 0);
    Parts parts(layouts.tiles());
    const bool sliced =
        size > 1 && leads(tensor.shape(), dimension) && layouts.of(tensor.shape()).blocks().leading == size;
    const poplar::Tensor memory = sliced ? layouts.memoryOrder(bits) : rowsInOrder(rolled, rest);
    for (std::size_t tile = 0; tile < parts.size(); ++tile) {
      if (cuts[tile] == cuts[tile + 1]) continue;
      parts[tile] = sliced ? memory.slice(cuts[tile] * size, cuts[tile + 1] * size)
                           : memory.slice(cuts[tile], cuts[tile + 1], 1).flatten();
    }
    return parts;
  }

  static bool leads(const Shape& shape, unsigned dimension) {
    for (unsigned d = 0; d < dimension; ++d) {
      if (shape[d] != 1) return false;
    }
    return true;
  }

  // {size of the dimension, rest in the memory order of its shape}
  poplar::Tensor rowsInOrder(const poplar::Tensor& rolled, const Shape& rest) const {
    std::vector<poplar::Tensor> rows;
    for (std::size_t i = 0; i < rolled.dim(0); ++i) {
      rows.push_back(lowering_.layouts().memoryOrder(rolled[i].reshape(rest)).expand({0}));
    }
    return poplar::concat(rows);
  }

  Lowering& lowering_;
  Shape whole_;
  std::vector<ValueId> starts_;
  bool is_signed_ = true;
};

// table[windows] = values: the part in all but the last window is taken out, changed and put back.
void update(const Windows& all, const poplar::Tensor& table, const poplar::Tensor& values,
            std::span<const Window> windows) {
  if (windows.size() == 1) return all.move(table, values, windows[0], true);
  const unsigned d = windows[0].dimension;
  const poplar::Tensor inner = all.temporary(table, d, values.dim(d));
  all.move(table, inner, windows[0], false);
  update(all, inner, values, windows.subspan(1));
  all.move(table, inner, windows[0], true);
}

void dynamicSlice(Lowering& lowering, const Instruction& instruction) {
  Windows all(lowering, instruction, 1);
  const std::vector<Window> windows = all.of(lowering.type(instruction.outputs[0]).shape);
  poplar::Tensor from = lowering.get(instruction.inputs[0]);
  const poplar::Tensor out = lowering.make(instruction.outputs[0]);
  if (out.numElements() == 0) return;
  if (windows.empty()) return copy(lowering, from, out, "slice");
  for (const Window& window : windows) {
    const unsigned d = window.dimension;
    const bool last = d == windows.back().dimension;
    const poplar::Tensor to = last ? out : all.temporary(from, d, out.dim(d));
    all.move(from, to, window, false);
    from = to;
  }
}

void dynamicUpdateSlice(Lowering& lowering, const Instruction& instruction) {
  const ValueId input = instruction.inputs[0], output = instruction.outputs[0];
  Windows all(lowering, instruction, 2);
  const std::vector<Window> windows = all.of(lowering.type(instruction.inputs[1]).shape);
  const poplar::Tensor values = lowering.get(instruction.inputs[1]);
  if (windows.empty()) {
    const poplar::Tensor out = lowering.make(output);
    return copy(lowering, values, out, "update");
  }
  if (!lowering.takeOver(output, input)) lowering.copy(input, lowering.make(output));
  const poplar::Tensor table = lowering.get(output);
  if (values.numElements() > 0) update(all, table, values, windows);
}

}  // namespace

extern const Operation kDynamicSlice = {checkDynamicSlice, dynamicSlice};
extern const Operation kDynamicUpdateSlice = {checkDynamicUpdate, dynamicUpdateSlice};

}  // namespace snnjax::executor::ops
