// Operations that only look at values in another way: none of them moves an element. What needs the elements elsewhere
// fetches them.
#include <algorithm>

#include "executor/registry.hpp"

namespace snnjax::executor::ops {
namespace {

std::size_t at(const std::vector<std::int64_t>& numbers, std::size_t i) { return static_cast<std::size_t>(numbers[i]); }

ValueId only(const std::vector<ValueId>& values) { return values[0]; }

void bindView(Lowering& lowering, const Instruction& instruction, const poplar::Tensor& tensor) {
  lowering.bind(only(instruction.outputs), tensor, instruction.inputs);
}

}  // namespace

void broadcastInDim(Lowering& lowering, const Instruction& instruction) {
  const Shape& shape = lowering.type(only(instruction.outputs)).shape;
  const std::vector<std::int64_t>& to = instruction.ints[0];
  poplar::Tensor tensor = lowering.get(only(instruction.inputs));
  // The operand's dimensions in the order of their places, with ones where there is none.
  std::vector<unsigned> order(to.size());
  for (unsigned d = 0; d < order.size(); ++d) order[d] = d;
  std::sort(order.begin(), order.end(), [&](unsigned a, unsigned b) { return to[a] < to[b]; });
  tensor = tensor.dimShuffle(order);
  Shape sizes(shape.size(), 1);
  for (const unsigned d : order) sizes[at(to, d)] = lowering.type(only(instruction.inputs)).shape[d];
  tensor = tensor.reshape(sizes);
  for (unsigned d = 0; d < shape.size(); ++d) {
    if (sizes[d] == shape[d]) continue;
    tensor = shape[d] == 0 ? tensor.slice(0, 0, d) : tensor.broadcast(static_cast<unsigned>(shape[d]), d);
  }
  bindView(lowering, instruction, tensor);
}

void reshape(Lowering& lowering, const Instruction& instruction) {
  const poplar::Tensor tensor = lowering.get(only(instruction.inputs));
  bindView(lowering, instruction, tensor.reshape(lowering.type(only(instruction.outputs)).shape));
}

void bitcast(Lowering& lowering, const Instruction& instruction) {
  const poplar::Tensor tensor = lowering.get(only(instruction.inputs));
  bindView(lowering, instruction, tensor.reinterpret(poplarType(lowering.type(only(instruction.outputs)).dtype)));
}

void transpose(Lowering& lowering, const Instruction& instruction) {
  const std::vector<unsigned> order(instruction.ints[0].begin(), instruction.ints[0].end());
  bindView(lowering, instruction, lowering.get(only(instruction.inputs)).dimShuffle(order));
}

void slice(Lowering& lowering, const Instruction& instruction) {
  poplar::Tensor tensor = lowering.get(only(instruction.inputs));
  for (unsigned d = 0; d < tensor.rank(); ++d) {
    tensor = tensor.slice(at(instruction.ints[0], d), at(instruction.ints[1], d), d);
    const std::size_t stride = std::min(at(instruction.ints[2], d), std::max<std::size_t>(tensor.dim(d), 1));
    if (stride > 1) tensor = tensor.subSample(static_cast<unsigned>(stride), d);
  }
  bindView(lowering, instruction, tensor);
}

void reverse(Lowering& lowering, const Instruction& instruction) {
  poplar::Tensor tensor = lowering.get(only(instruction.inputs));
  for (const std::int64_t d : instruction.ints[0]) tensor = tensor.reverse(static_cast<unsigned>(d));
  bindView(lowering, instruction, tensor);
}

void concatenate(Lowering& lowering, const Instruction& instruction) {
  std::vector<poplar::Tensor> parts;
  for (const ValueId value : instruction.inputs) parts.push_back(lowering.get(value));
  bindView(lowering, instruction, poplar::concat(parts, static_cast<unsigned>(instruction.ints[0][0])));
}

}  // namespace snnjax::executor::ops
