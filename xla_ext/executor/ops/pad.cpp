// Padding: before, after and between elements; negative edges cut.
#include "executor/ops/compute_step.hpp"
#include "executor/registry.hpp"

namespace snnjax::executor::ops {
namespace {

// `count` times the padding element along a dimension of a tensor.
poplar::Tensor padding(const poplar::Tensor& value, const poplar::Tensor& like, unsigned dimension, std::size_t count) {
  Shape shape = like.shape();
  shape[dimension] = count;
  return value.reshape({1}).broadcast(asUnsigned(productOf(shape)), 0).reshape(shape);
}

// Elements begin to end of a dimension, which may lie outside of the tensor.
poplar::Tensor extended(poplar::Tensor tensor, const poplar::Tensor& value, unsigned dimension, std::int64_t low,
                        std::int64_t high) {
  const auto size = static_cast<std::int64_t>(tensor.dim(dimension));
  const std::int64_t begin = std::min(std::max<std::int64_t>(0, -low), size);
  const std::int64_t end = std::max(begin, std::min(size, size + high));
  std::vector<poplar::Tensor> parts;
  const auto total = static_cast<std::size_t>(size + low + high);
  const auto before = std::min(static_cast<std::size_t>(std::max<std::int64_t>(0, low)), total);
  const auto kept = static_cast<std::size_t>(end - begin);
  if (before > 0) parts.push_back(padding(value, tensor, dimension, before));
  parts.push_back(tensor.slice(static_cast<std::size_t>(begin), static_cast<std::size_t>(end), dimension));
  if (total > before + kept) parts.push_back(padding(value, tensor, dimension, total - before - kept));
  return poplar::concat(parts, dimension);
}

// With `count` padding elements between each two.
poplar::Tensor spread(const poplar::Tensor& tensor, const poplar::Tensor& value, unsigned dimension,
                      std::size_t count) {
  const std::size_t size = tensor.dim(dimension);
  if (count == 0 || size < 2) return tensor;
  const poplar::Tensor column = tensor.expand({std::size_t{dimension} + 1});
  poplar::Tensor both = poplar::concat(column, padding(value, column, dimension + 1, count), dimension + 1);
  Shape shape = tensor.shape();
  shape[dimension] = size * (count + 1);
  return both.reshape(shape).slice(0, (size - 1) * (count + 1) + 1, dimension);
}

}  // namespace

void pad(Lowering& lowering, const Instruction& instruction) {
  poplar::Tensor tensor = lowering.get(instruction.inputs[0]);
  const poplar::Tensor value = lowering.get(instruction.inputs[1]);
  const poplar::Tensor out = lowering.make(instruction.outputs[0]);
  if (out.numElements() == 0) return;
  for (unsigned d = 0; d < tensor.rank(); ++d) {
    tensor = spread(tensor, value, d, static_cast<std::size_t>(instruction.ints[2][d]));
    tensor = extended(tensor, value, d, instruction.ints[0][d], instruction.ints[1][d]);
  }
  copy(lowering, tensor, out, "pad");
}

}  // namespace snnjax::executor::ops
