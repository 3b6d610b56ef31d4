// The targets of `spike_matmul`: ids and values [1, rows, capacity], weights [1, inputs, outputs].
#include <builders/loop.hpp>
#include <builders/spike_matmul.hpp>

#include "executor/operations.hpp"
#include "executor/targets/operands.hpp"
#include "executor/targets/target_check.hpp"

namespace snnjax::executor::targets {
namespace {

// Positions among the operands of an instruction; the shapes of the product from them.
struct Positions {
  std::size_t ids, of_outputs;  // an array whose last axis are the outputs: weights or cotangents
};

builders::SpikeMatmulOptions optionsOf(const Plan& plan, const Instruction& instruction, const Positions& positions,
                                       std::size_t num_inputs) {
  const ValueId ids = instruction.inputs[positions.ids];
  builders::SpikeMatmulOptions options;
  options.rows = static_cast<unsigned>(dimension(plan, ids, 1));
  options.capacity = static_cast<unsigned>(dimension(plan, ids, 2));
  options.num_inputs = static_cast<unsigned>(num_inputs);
  options.outputs = static_cast<unsigned>(dimension(plan, instruction.inputs[positions.of_outputs], 2));
  options.half_weights = isHalf(plan, instruction, positions.of_outputs);
  options.long_ids = isLong(plan, instruction, positions.ids);
  return options;
}

bool isEmpty(const builders::SpikeMatmulOptions& options) {
  return isAnyEmpty({options.rows, options.capacity, options.outputs});
}

// The variables of a product with weights, used in place if on their tiles, else copied there.
builders::SpikeMatmulTensors addTensors(Lowering& lowering, const builders::SpikeMatmulOptions& options,
                                        builders::SpikeMatmulUse use, ValueId weights) {
  const builders::TileRange tiles = builders::tilesOf(options, lowering.graph().getTarget().getNumTiles());
  const std::size_t rows = options.num_inputs, columns = options.outputs;
  const poplar::Tensor in_place = weightsInPlace(lowering, tiles, rows, columns, weights);
  use.weights = !in_place.valid();
  builders::SpikeMatmulTensors tensors = builders::addSpikeMatmulTensors(lowering.graph(), options, use);
  if (in_place.valid()) {
    tensors.weights = in_place;
    const poplar::Tensor zero = in_place.slice(rows * tiles.columns, (rows + 1) * tiles.columns, 1);
    lowering.program().add(builders::zeros(lowering.graph(), {zero}, lowering.debug("zero").getPathName()));
  } else {
    zeroBeside(lowering.graph(), tensors.weights, tiles, rows, columns, 1);
    bring(lowering, lowering.get(weights)[0], asRows(tensors.weights, tiles, rows, columns, 1));
  }
  return tensors;
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
  const ValueId weights = instruction.inputs[2];
  const auto options = optionsOf(lowering.plan(), instruction, {0, 2}, dimension(lowering, weights, 1));
  if (isEmpty(options)) return yieldZeros(lowering, instruction);
  const auto tensors = addTensors(lowering, options, {}, weights);
  bring(lowering, operand(lowering, instruction, 0), tensors.ids);
  bring(lowering, operand(lowering, instruction, 1), tensors.values);
  lowering.program().add(builders::addSpikeMatmul(lowering.graph(), options, tensors));
  yield(lowering, instruction, 0, asRows(tensors.out, tensors.tiles, options.rows, options.outputs));
}

// (ids, weights, g) -> d_values
void spikeMatmulValuesBackward(Lowering& lowering, const Instruction& instruction) {
  const ValueId weights = instruction.inputs[1];
  const auto options = optionsOf(lowering.plan(), instruction, {0, 2}, dimension(lowering, weights, 1));
  if (isEmpty(options)) return yieldZeros(lowering, instruction);
  const builders::SpikeMatmulUse use = {.values = false, .out = false, .weights_gradient = false};
  const auto tensors = addTensors(lowering, options, use, weights);
  bring(lowering, operand(lowering, instruction, 0), tensors.ids);
  const auto cotangents = bringCotangents(lowering, options, tensors, operand(lowering, instruction, 2), use);
  lowering.program().add(builders::addSpikeMatmulBackward(lowering.graph(), options, tensors, cotangents));
  yield(lowering, instruction, 0, cotangents.d_values);
}

// (ids, values, g) -> d_weights
void spikeMatmulWeightsBackward(Lowering& lowering, const Instruction& instruction) {
  const std::size_t num_inputs = dimension(lowering, instruction.outputs[0], 1);
  const auto options = optionsOf(lowering.plan(), instruction, {0, 2}, num_inputs);
  if (isEmpty(options)) return yieldZeros(lowering, instruction);
  builders::SpikeMatmulUse use = {.weights = false, .out = false, .values_gradient = false};
  const auto tensors = builders::addSpikeMatmulTensors(lowering.graph(), options, use);
  bring(lowering, operand(lowering, instruction, 0), tensors.ids);
  bring(lowering, operand(lowering, instruction, 1), tensors.values);
  const poplar::Tensor in_place =
      gradientInPlace(lowering, tensors.tiles, num_inputs, options.outputs, instruction.outputs[0]);
  use.weights_gradient = !in_place.valid();
  auto cotangents = bringCotangents(lowering, options, tensors, operand(lowering, instruction, 2), use);
  if (in_place.valid()) cotangents.d_weights = in_place;
  lowering.program().add(builders::addSpikeMatmulBackward(lowering.graph(), options, tensors, cotangents));
  if (in_place.valid()) return;
  yield(lowering, instruction, 0, asRows(cotangents.d_weights, tensors.tiles, options.num_inputs, options.outputs, 1));
}

// Weights, or their gradient, [1, inputs, outputs], on the tiles of the outputs.
std::vector<Proposal> proposalFor(const Plan& plan, const builders::SpikeMatmulOptions& options, ValueId weights,
                                  const poplar::Target& target) {
  const builders::TileRange tiles = builders::tilesOf(options, target.getNumTiles());
  const std::optional<Blocks> blocks = blocksOf(tiles, dimension(plan, weights, 1), options.outputs);
  return blocks && !isEmpty(options) ? std::vector<Proposal>{{weights, *blocks}} : std::vector<Proposal>{};
}

template <std::size_t Weights>
std::vector<Proposal> propose(const Plan& plan, const Instruction& instruction, const poplar::Target& target) {
  const ValueId weights = instruction.inputs[Weights];
  const auto options = optionsOf(plan, instruction, {0, 2}, dimension(plan, weights, 1));
  return proposalFor(plan, options, weights, target);
}

std::vector<Proposal> proposeGradient(const Plan& plan, const Instruction& instruction, const poplar::Target& target) {
  const ValueId gradient = instruction.outputs[0];
  const auto options = optionsOf(plan, instruction, {0, 2}, dimension(plan, gradient, 1));
  return proposalFor(plan, options, gradient, target);
}

// ids [rows, capacity] and an array [.., outputs]; what they are multiplied with or give: values, rows, weights.
struct Arrays {
  const ArrayType &ids, &values, &rows, &weights;
};

void checkArrays(const TargetCheck& check, const Arrays& arrays) {
  const Shape ids = check.sizes(arrays.ids, 2), weights = check.sizes(arrays.weights, 2);
  check.need(arrays.ids, Numbers::kIds, ids);
  check.need(arrays.values, Numbers::kFloats, ids);
  check.need(arrays.weights, Numbers::kFloats, weights);
  check.need(arrays.rows, Numbers::kFloats, {ids[0], weights[1]});
}

void checkSpikeMatmul(const OperationCheck& op) {
  const TargetCheck check(op);
  check.needCounts(3, 1);
  checkArrays(check, {op.input(0), op.input(1), op.output(), op.input(2)});
}

void checkSpikeMatmulValuesBackward(const OperationCheck& op) {
  const TargetCheck check(op);
  check.needCounts(3, 1);
  checkArrays(check, {op.input(0), op.output(), op.input(2), op.input(1)});
}

void checkSpikeMatmulWeightsBackward(const OperationCheck& op) {
  const TargetCheck check(op);
  check.needCounts(3, 1);
  checkArrays(check, {op.input(0), op.input(1), op.input(2), op.output()});
}

}  // namespace

extern const Operation kSpikeMatmul = {checkSpikeMatmul, spikeMatmul, propose<2>};
extern const Operation kSpikeMatmulValuesBackward = {checkSpikeMatmulValuesBackward, spikeMatmulValuesBackward,
                                                     propose<1>};
extern const Operation kSpikeMatmulWeightsBackward = {checkSpikeMatmulWeightsBackward, spikeMatmulWeightsBackward,
                                                      proposeGradient};

}  // namespace snnjax::executor::targets
