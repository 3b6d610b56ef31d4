// The targets of `spike_matmul`: ids and values [1, rows, capacity], weights [1, inputs, outputs].
#include <builders/spike_matmul.hpp>

#include "executor/operations.hpp"
#include "executor/targets/operands.hpp"

namespace snnjax::executor::targets {
namespace {

// Positions among the operands of an instruction; the shapes of the product from them.
struct Positions {
  std::size_t ids, of_outputs;  // an array whose last axis are the outputs: weights or cotangents
};

builders::SpikeMatmulOptions optionsOf(const Lowering& lowering, const Instruction& instruction,
                                       const Positions& positions, std::size_t num_inputs) {
  const ValueId ids = instruction.inputs[positions.ids];
  builders::SpikeMatmulOptions options;
  options.rows = static_cast<unsigned>(dimension(lowering, ids, 1));
  options.capacity = static_cast<unsigned>(dimension(lowering, ids, 2));
  options.num_inputs = static_cast<unsigned>(num_inputs);
  options.outputs = static_cast<unsigned>(dimension(lowering, instruction.inputs[positions.of_outputs], 2));
  options.half_weights = isHalf(lowering, instruction, positions.of_outputs);
  options.long_ids = isLong(lowering, instruction, positions.ids);
  return options;
}

bool isEmpty(const builders::SpikeMatmulOptions& options) {
  return options.rows * options.capacity * options.outputs == 0;
}

void bringWeights(Lowering& lowering, const builders::SpikeMatmulOptions& options,
                  const builders::SpikeMatmulTensors& tensors, const poplar::Tensor& weights) {
  zeroBeside(lowering.graph(), tensors.weights, tensors.tiles, options.num_inputs, options.outputs, 1);
  bring(lowering, weights, asRows(tensors.weights, tensors.tiles, options.num_inputs, options.outputs, 1));
}

builders::SpikeMatmulCotangents bringCotangents(Lowering& lowering, const builders::SpikeMatmulOptions& options,
                                                const builders::SpikeMatmulTensors& tensors, const poplar::Tensor& g,
                                                const builders::SpikeMatmulUse& use) {
  const auto cotangents = builders::addSpikeMatmulCotangents(lowering.graph(), options, tensors, use);
  zeroBeside(lowering.graph(), cotangents.g, tensors.tiles, options.rows, options.outputs);
  bring(lowering, g, asRows(cotangents.g, tensors.tiles, options.rows, options.outputs));
  return cotangents;
}

// (ids, values, weights) -> out
void spikeMatmul(Lowering& lowering, const Instruction& instruction) {
  checkCounts(lowering, instruction, 3, 1);
  const auto options = optionsOf(lowering, instruction, {0, 2}, dimension(lowering, instruction.inputs[2], 1));
  if (isEmpty(options)) return yieldZeros(lowering, instruction);
  const auto tensors = builders::addSpikeMatmulTensors(lowering.graph(), options);
  bring(lowering, operand(lowering, instruction, 0), tensors.ids);
  bring(lowering, operand(lowering, instruction, 1), tensors.values);
  bringWeights(lowering, options, tensors, operand(lowering, instruction, 2));
  lowering.program().add(builders::addSpikeMatmul(lowering.graph(), options, tensors));
  yield(lowering, instruction, 0, asRows(tensors.out, tensors.tiles, options.rows, options.outputs));
}

// (ids, weights, g) -> d_values
void spikeMatmulValuesBackward(Lowering& lowering, const Instruction& instruction) {
  checkCounts(lowering, instruction, 3, 1);
  const auto options = optionsOf(lowering, instruction, {0, 2}, dimension(lowering, instruction.inputs[1], 1));
  if (isEmpty(options)) return yieldZeros(lowering, instruction);
  const builders::SpikeMatmulUse use = {.values = false, .out = false, .weights_gradient = false};
  const auto tensors = builders::addSpikeMatmulTensors(lowering.graph(), options, use);
  bring(lowering, operand(lowering, instruction, 0), tensors.ids);
  bringWeights(lowering, options, tensors, operand(lowering, instruction, 1));
  const auto cotangents = bringCotangents(lowering, options, tensors, operand(lowering, instruction, 2), use);
  lowering.program().add(builders::addSpikeMatmulBackward(lowering.graph(), options, tensors, cotangents));
  yield(lowering, instruction, 0, cotangents.d_values);
}

// (ids, values, g) -> d_weights
void spikeMatmulWeightsBackward(Lowering& lowering, const Instruction& instruction) {
  checkCounts(lowering, instruction, 3, 1);
  const std::size_t num_inputs = dimension(lowering, instruction.outputs[0], 1);
  const auto options = optionsOf(lowering, instruction, {0, 2}, num_inputs);
  if (isEmpty(options)) return yieldZeros(lowering, instruction);
  const builders::SpikeMatmulUse use = {.weights = false, .out = false, .values_gradient = false};
  const auto tensors = builders::addSpikeMatmulTensors(lowering.graph(), options, use);
  bring(lowering, operand(lowering, instruction, 0), tensors.ids);
  bring(lowering, operand(lowering, instruction, 1), tensors.values);
  const auto cotangents = bringCotangents(lowering, options, tensors, operand(lowering, instruction, 2), use);
  lowering.program().add(builders::addSpikeMatmulBackward(lowering.graph(), options, tensors, cotangents));
  yield(lowering, instruction, 0, asRows(cotangents.d_weights, tensors.tiles, options.num_inputs, options.outputs, 1));
}

}  // namespace

extern const Operation kSpikeMatmul = {nullptr, spikeMatmul};
extern const Operation kSpikeMatmulValuesBackward = {nullptr, spikeMatmulValuesBackward};
extern const Operation kSpikeMatmulWeightsBackward = {nullptr, spikeMatmulWeightsBackward};

}  // namespace snnjax::executor::targets
