// The targets of `spike_matmul`; arrays have a leading groups axis of length 1.
#include <builders/spike_matmul.hpp>
#include <builders/vertices.hpp>

#include "executor/operations.hpp"
#include "executor/targets/operands.hpp"
#include "executor/targets/target_check.hpp"

namespace snnjax::executor::targets {
namespace {

using Product = Call<spike_matmul::Operands<Value>, spike_matmul::Results<Value>>;
using ValuesBackward = Call<spike_matmul::ValuesBackwardOperands<Value>, spike_matmul::ValuesBackwardResults<Value>>;
using WeightsBackward = Call<spike_matmul::WeightsBackwardOperands<Value>, spike_matmul::WeightsBackwardResults<Value>>;

// `of_outputs` is an array whose last axis are the outputs, of the dtype of the weights.
builders::SpikeMatmulOptions optionsOf(const Plan& plan, const Value& ids, const Value& of_outputs,
                                       std::size_t num_inputs) {
  builders::SpikeMatmulOptions options;
  options.rows = static_cast<unsigned>(dimension(plan, ids, 1));
  options.capacity = static_cast<unsigned>(dimension(plan, ids, 2));
  options.num_inputs = static_cast<unsigned>(num_inputs);
  options.outputs = static_cast<unsigned>(dimension(plan, of_outputs, 2));
  options.half_weights = isHalf(plan, of_outputs);
  options.long_ids = isLong(plan, ids);
  return options;
}

builders::SpikeMatmulOptions optionsOf(const Plan& plan, const Product& call) {
  const Value& weights = call.from.weights.array;
  return optionsOf(plan, call.from.ids, weights, dimension(plan, weights, 1));
}

builders::SpikeMatmulOptions optionsOf(const Plan& plan, const ValuesBackward& call) {
  return optionsOf(plan, call.from.ids, call.from.g, dimension(plan, call.from.weights, 1));
}

builders::SpikeMatmulOptions optionsOf(const Plan& plan, const WeightsBackward& call) {
  return optionsOf(plan, call.from.ids, call.from.g, dimension(plan, call.to.g_weights, 1));
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

void spikeMatmul(Lowering& lowering, const Instruction& instruction) {
  const Product call(instruction);
  const auto options = optionsOf(lowering.plan(), call);
  if (isEmpty(options)) return yieldZeros(lowering, instruction);
  const auto tensors = addTensors(lowering, options, {}, call.from.weights.array.value());
  bring(lowering, operand(lowering, call.from.ids), tensors.ids);
  bring(lowering, operand(lowering, call.from.values), tensors.values);
  lowering.program().add(builders::addSpikeMatmul(lowering.graph(), options, tensors));
  yield(lowering, call.to.out, asRows(tensors.out, tensors.tiles, options.rows, options.outputs));
}

void spikeMatmulValuesBackward(Lowering& lowering, const Instruction& instruction) {
  const ValuesBackward call(instruction);
  const auto options = optionsOf(lowering.plan(), call);
  if (isEmpty(options)) return yieldZeros(lowering, instruction);
  const builders::SpikeMatmulUse use = {.values = false, .out = false, .weights_gradient = false};
  const auto tensors = addTensors(lowering, options, use, call.from.weights.value());
  bring(lowering, operand(lowering, call.from.ids), tensors.ids);
  const auto cotangents = bringCotangents(lowering, options, tensors, operand(lowering, call.from.g), use);
  lowering.program().add(builders::addSpikeMatmulBackward(lowering.graph(), options, tensors, cotangents));
  yield(lowering, call.to.g_values, cotangents.d_values);
}

void spikeMatmulWeightsBackward(Lowering& lowering, const Instruction& instruction) {
  const WeightsBackward call(instruction);
  const auto options = optionsOf(lowering.plan(), call);
  if (isEmpty(options)) return yieldZeros(lowering, instruction);
  const ValueId g_weights = call.to.g_weights.value();
  builders::SpikeMatmulUse use = {.weights = false, .out = false, .values_gradient = false};
  const auto tensors = builders::addSpikeMatmulTensors(lowering.graph(), options, use);
  bring(lowering, operand(lowering, call.from.ids), tensors.ids);
  bring(lowering, operand(lowering, call.from.values), tensors.values);
  const poplar::Tensor in_place =
      gradientInPlace(lowering, tensors.tiles, options.num_inputs, options.outputs, g_weights);
  use.weights_gradient = !in_place.valid();
  auto cotangents = bringCotangents(lowering, options, tensors, operand(lowering, call.from.g), use);
  if (in_place.valid()) cotangents.d_weights = in_place;
  lowering.program().add(builders::addSpikeMatmulBackward(lowering.graph(), options, tensors, cotangents));
  if (in_place.valid()) return;
  yield(lowering, g_weights, asRows(cotangents.d_weights, tensors.tiles, options.num_inputs, options.outputs, 1));
}

// Weights, or their gradient, are best on the tiles of the outputs.
ValueId placed(const Product& call) { return call.from.weights.array.value(); }
ValueId placed(const ValuesBackward& call) { return call.from.weights.value(); }
ValueId placed(const WeightsBackward& call) { return call.to.g_weights.value(); }

template <typename Target>
std::vector<Proposal> proposeWeights(const Plan& plan, const Instruction& instruction, const poplar::Target& target) {
  const Target call(instruction);
  const auto options = optionsOf(plan, call);
  if (isEmpty(options)) return {};
  const builders::TileRange tiles = builders::tilesOf(options, target.getNumTiles());
  const std::optional<Blocks> blocks = blocksOf(tiles, options.num_inputs, options.outputs);
  return blocks ? std::vector<Proposal>{{placed(call), *blocks}} : std::vector<Proposal>{};
}

void needFloating(const OperationCheck& op, const Product& call) {
  op.need(call.from.weights.array.has_value(), "have floating weights");
}
void needFloating(const OperationCheck&, const auto&) {}

template <typename Target>
void checkProduct(const OperationCheck& op) {
  const Target call(op.instruction());
  TargetCheck(op).need(call);
  needFloating(op, call);
}

}  // namespace

extern const Operation kSpikeMatmul = {checkProduct<Product>, spikeMatmul, proposeWeights<Product>};
extern const Operation kSpikeMatmulValuesBackward = {checkProduct<ValuesBackward>, spikeMatmulValuesBackward,
                                                     proposeWeights<ValuesBackward>};
extern const Operation kSpikeMatmulWeightsBackward = {checkProduct<WeightsBackward>, spikeMatmulWeightsBackward,
                                                      proposeWeights<WeightsBackward>};

}  // namespace snnjax::executor::targets
