#include "executor/targets/operands.hpp"

#include <popops/Cast.hpp>

namespace snnjax::executor::targets {

bool isMadeIn(Lowering& lowering, const Blocks& blocks, ValueId result) {
  if (lowering.type(result).dtype != Dtype::kFloat32) return false;
  if (!(lowering.layouts().ofValue(result).blocks() == blocks)) return false;
  lowering.make(result);
  return true;
}

std::size_t dimension(const Plan& plan, const Value& value, std::size_t axis) {
  return plan.types[value.value()].shape[axis];
}

Tensor operand(Lowering& lowering, const Value& value) { return lowering.get(value.value())[0]; }

void bring(Lowering& lowering, const Tensor& from, const Tensor& to) {
  Tensor source = from;
  if (!(from.elementType() == to.elementType())) {
    source = popops::cast(lowering.graph(), from, to.elementType(), lowering.program(), lowering.debug("cast"));
  }
  if (source.numElements() != to.numElements()) {  // one number or one row for all
    const bool repeats = source.numElements() > 0 && to.numElements() % source.numElements() == 0;
    if (!repeats) {
      throw Error(ErrorCode::kInternal, "custom_call: `operand` must fill " + std::to_string(to.numElements()) +
                                            " elements, got " + std::to_string(source.numElements()) +
                                            ". Report this program to snnjax.");
    }
    const auto times = static_cast<unsigned>(to.numElements() / source.numElements());
    source = source.numElements() == 1 ? source.flatten().broadcast(times, 0)
                                       : source.flatten().expand({0}).broadcast(times, 0);
  }
  lowering.program().add(poplar::program::Copy(source.flatten(), to.flatten(), false, lowering.debug("operand")));
}

void bringRows(Lowering& lowering, const Tensor& from, const Tensor& blocks, const builders::TileRange& tiles,
               std::size_t rows, std::size_t neurons) {
  const std::size_t columns = tiles.columns, all_rows = blocks.dim(1) / columns;
  const std::size_t in_last = neurons - (tiles.count - 1) * columns;
  const Tensor last = blocks[tiles.count - 1].reshape({all_rows, columns}).slice(0, rows);
  for (const Tensor& beside : {blocks.slice(rows * columns, all_rows * columns, 1), last.slice(in_last, columns, 1)}) {
    if (beside.numElements() > 0) lowering.graph().setInitialValue(beside, 0.0F);
  }
  bring(lowering, from, builders::asRows(blocks, tiles, rows, neurons));
}

void yield(Lowering& lowering, const Value& result, const Tensor& tensor) {
  const Tensor to = lowering.make(result.value());
  bring(lowering, tensor, to);
}

void yieldZeros(Lowering& lowering, const Instruction& instruction) {
  for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
    const Tensor out = lowering.make(instruction.outputs[i]);
    if (out.numElements() == 0) continue;
    const Tensor zero = lowering.graph().addConstant(out.elementType(), {1}, 0, lowering.debug("zero"));
    lowering.graph().setTileMapping(zero, 0);
    bring(lowering, zero, out);
  }
}

bool isAnyEmpty(std::initializer_list<std::size_t> sizes) {
  return std::ranges::any_of(sizes, [](std::size_t size) { return size == 0; });
}

bool isHalf(const Plan& plan, const Value& value) { return plan.types[value.value()].dtype == Dtype::kFloat16; }

bool isLong(const Plan& plan, const Value& value) { return plan.types[value.value()].dtype == Dtype::kInt32; }

}  // namespace snnjax::executor::targets
