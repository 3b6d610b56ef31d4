// Operations that only change the view of values: none moves an element, except padding and a matrix that is transposed
// in memory of its own, which are copied. Whoever needs the elements elsewhere fetches them. An iota is a view of one
// line of numbers.
#include <algorithm>
#include <bit>
#include <numeric>

#include "executor/operations.hpp"
#include "executor/ops/compute_step.hpp"
#include "executor/storages.hpp"

namespace snnjax::executor::ops {
namespace {

void checkBroadcast(const OperationCheck& op) {
  op.needCounts(1, 1, 1);
  op.needSameDtype(op.input(0), op.output());
  const Shape to = op.dimensions(0, op.output().shape.size());
  op.need(to.size() == op.input(0).shape.size(), "place each dimension");
  for (std::size_t d = 0; d < to.size(); ++d) {
    const std::size_t size = op.input(0).shape[d];
    op.need(size == 1 || size == op.output().shape[to[d]], "keep sizes but those of 1");
  }
}

void checkReshape(const OperationCheck& op) {
  op.needCounts(1, 1, 0);
  op.needSameDtype(op.input(0), op.output());
  op.need(op.input(0).numElements() == op.output().numElements(), "keep the number of elements");
  if (op.instruction().op == "identity") op.needOutput(op.input(0).shape);
}

void checkBitcast(const OperationCheck& op) {
  op.needCounts(1, 1, 0);
  op.needOutput(op.input(0).shape);
  op.need(numBytes(op.input(0).dtype) == numBytes(op.output().dtype), "keep the size of elements");
}

void checkTranspose(const OperationCheck& op) {
  op.needCounts(1, 1, 1);
  op.needSameDtype(op.input(0), op.output());
  const Shape& shape = op.input(0).shape;
  const Shape permutation = op.dimensions(0, shape.size());
  op.need(permutation.size() == shape.size(), "place each dimension");
  Shape result;
  for (const std::size_t d : permutation) result.push_back(shape[d]);
  op.needOutput(result);
}

void checkTransposed(const OperationCheck& op) {
  op.needCounts(1, 1, 0);
  op.needSameDtype(op.input(0), op.output());
  const Shape& shape = op.input(0).shape;
  op.need(shape.size() == 2, "take a matrix");
  op.needOutput({shape[1], shape[0]});
}

void checkSlice(const OperationCheck& op) {
  op.needCounts(1, 1, 3);
  op.needSameDtype(op.input(0), op.output());
  const Shape& shape = op.input(0).shape;
  const Shape first = op.sizes(0, shape.size()), last = op.sizes(1, shape.size()), step = op.sizes(2, shape.size());
  Shape result;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    op.need(first[d] <= last[d] && last[d] <= shape[d] && step[d] > 0, "stay inside of the array");
    result.push_back((last[d] - first[d] + step[d] - 1) / step[d]);
  }
  op.needOutput(result);
}

void checkReverse(const OperationCheck& op) {
  op.needCounts(1, 1, 1);
  op.needSameDtype(op.input(0), op.output());
  op.dimensions(0, op.input(0).shape.size());
  op.needOutput(op.input(0).shape);
}

void checkConcatenate(const OperationCheck& op) {
  op.need(op.numInputs() > 0 && op.numOutputs() == 1 && op.instruction().ints.size() == 1, "have inputs and a result");
  const std::size_t dimension = op.number(0, op.output().shape.size());
  Shape result = op.output().shape;
  result[dimension] = 0;
  for (std::size_t i = 0; i < op.numInputs(); ++i) {
    op.needSameDtype(op.input(i), op.output());
    op.need(op.input(i).shape.size() == result.size(), "have inputs of one rank");
    Shape expected = result;
    expected[dimension] = op.input(i).shape[dimension];
    op.need(op.input(i).shape == expected, "have inputs that agree in the other dimensions");
    result[dimension] += expected[dimension];
  }
  op.needOutput(result);
}

void checkPad(const OperationCheck& op) {
  op.needCounts(2, 1, 3);
  op.needSameDtype(op.input(0), op.output());
  op.needSameDtype(op.input(1), op.output());
  op.need(op.input(1).numElements() == 1, "pad by one element");
  const Shape& shape = op.input(0).shape;
  const Shape inside = op.sizes(2, shape.size());
  op.need(op.ints(0).size() == shape.size() && op.ints(1).size() == shape.size(), "pad each dimension");
  op.need(op.output().shape.size() == shape.size(), "keep the rank");
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t low = op.ints(0)[d], high = op.ints(1)[d], between = op.ints(2)[d];
    for (const std::int64_t each : {low, high, between}) {
      op.need(-kMost / 4 < each && each < kMost / 4, "pad by numbers below 2^38");
    }
    const auto size = static_cast<std::int64_t>(shape[d]);
    op.need(size == 0 || between < kMost / size, "pad by numbers below 2^38");
    const std::int64_t padded = size + std::max<std::int64_t>(size - 1, 0) * between + low + high;
    op.need(padded >= 0 && static_cast<std::size_t>(padded) == op.output().shape[d], "give the padded size");
  }
}

void checkIota(const OperationCheck& op) {
  op.needCounts(0, 1, 1);
  op.number(0, op.output().shape.size());
}

std::size_t at(const std::vector<std::int64_t>& numbers, std::size_t i) { return static_cast<std::size_t>(numbers[i]); }

ValueId only(const std::vector<ValueId>& values) { return values[0]; }

void bindView(Lowering& lowering, const Instruction& instruction, const poplar::Tensor& tensor) {
  if (keepsOrder(lowering.plan(), instruction)) {
    lowering.rename(only(instruction.outputs), only(instruction.inputs), tensor);
  } else {
    lowering.bind(only(instruction.outputs), tensor, instruction.inputs);
  }
}

// `count` times the padding element along a dimension of a tensor.
poplar::Tensor padding(const poplar::Tensor& value, const poplar::Tensor& like, unsigned dimension, std::size_t count) {
  Shape shape = like.shape();
  shape[dimension] = count;
  return value.reshape({1}).broadcast(asUnsigned(productOf(shape)), 0).reshape(shape);
}

// Elements begin to end of a dimension, a range that may exceed the tensor.
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

void broadcastInDim(Lowering& lowering, const Instruction& instruction) {
  const Shape& shape = lowering.type(only(instruction.outputs)).shape;
  const std::vector<std::int64_t>& to = instruction.ints[0];
  poplar::Tensor tensor = lowering.get(only(instruction.inputs));
  // The operand's dimensions in output order, with ones where there is none.
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

// Word by word, which takes two thirds as long as vertices that transpose parts.
void transposed(Lowering& lowering, const Instruction& instruction) {
  const poplar::Tensor matrix = lowering.get(instruction.inputs[0]);
  copy(lowering, matrix.transpose(), lowering.make(instruction.outputs[0]), "transposed");
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

}  // namespace

extern const Operation kBroadcastInDim = {checkBroadcast, broadcastInDim};
extern const Operation kReshape = {checkReshape, reshape};
extern const Operation kBitcast = {checkBitcast, bitcast};
extern const Operation kTranspose = {checkTranspose, transpose};
extern const Operation kTransposed = {checkTransposed, transposed};
extern const Operation kSlice = {checkSlice, slice};
extern const Operation kReverse = {checkReverse, reverse};
extern const Operation kConcatenate = {checkConcatenate, concatenate};
extern const Operation kPad = {checkPad, pad};
extern const Operation kIota = {checkIota, iota};

}  // namespace snnjax::executor::ops
