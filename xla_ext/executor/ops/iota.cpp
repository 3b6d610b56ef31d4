// Consecutive numbers: known when the program is compiled, so a constant of one dimension and a view of it.
#include <bit>
#include <numeric>

#include "executor/ops/compute_step.hpp"
#include "executor/registry.hpp"
#include "executor/storages.hpp"

namespace snnjax::executor::ops {
namespace {

// To nearest, as bfloat16 is the upper half of a float32.
std::uint16_t bfloat16Bits(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

poplar::Tensor numbers(Lowering& lowering, Dtype dtype, std::size_t count) {
  poplar::Graph& graph = lowering.graph();
  const poplar::Type type = poplarType(dtype);
  const poplar::ArrayRef<std::size_t> shape(count);
  if (dtype == Dtype::kFloat32 || dtype == Dtype::kFloat16) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 0.0F);
    return graph.addConstant(type, shape, poplar::ArrayRef<float>(values), lowering.debug("numbers"));
  }
  std::vector<long long> values(count);
  std::iota(values.begin(), values.end(), 0);
  if (dtype == Dtype::kBfloat16) {
    for (long long& value : values) value = bfloat16Bits(static_cast<float>(value));
  }
  return graph.addConstant(type, shape, poplar::ArrayRef<long long>(values), lowering.debug("numbers"));
}

}  // namespace

void iota(Lowering& lowering, const Instruction& instruction) {
  const ArrayType& type = lowering.type(instruction.outputs[0]);
  const auto dimension = static_cast<std::size_t>(instruction.ints[0][0]);
  const std::size_t count = type.shape[dimension];
  const std::size_t bytes = count * numBytes(type.dtype);
  checkTileMemory(lowering.graph(), bytes / lowering.layouts().tiles(), lowering.debug());
  poplar::Tensor tensor = numbers(lowering, type.dtype, count);
  lowering.layouts().map(lowering.graph(), tensor, {count});
  Shape along(type.shape.size(), 1);
  along[dimension] = count;
  tensor = tensor.reshape(along);
  for (unsigned d = 0; d < along.size(); ++d) {
    if (d != dimension) tensor = tensor.broadcast(asUnsigned(type.shape[d]), d);
  }
  lowering.bind(instruction.outputs[0], tensor);
}

}  // namespace snnjax::executor::ops
