// The targets of `spike_matmul`; arrays have a leading groups axis of length 1.
#include "builders/spike_matmul.hpp"

#include "executor/operations.hpp"
#include "executor/targets/operands.hpp"
#include "executor/targets/target_check.hpp"

namespace snnjax::executor::targets {
namespace {

using Product = Call<spike_matmul::Operands<Value>, spike_matmul::Results<Value>>;
using SpikesBackward = Call<spike_matmul::SpikesBackwardOperands<Value>, spike_matmul::SpikesBackwardResults<Value>>;
using WeightsBackward = Call<spike_matmul::WeightsBackwardOperands<Value>, spike_matmul::WeightsBackwardResults<Value>>;

// The weights, or their gradient, are best on the tiles of the outputs.
ValueId weightsOf(const Product& call) { return call.from.weights.array.value(); }
ValueId weightsOf(const SpikesBackward& call) { return call.from.weights.value(); }
ValueId weightsOf(const WeightsBackward& call) { return call.to.g_weights.value(); }

builders::SpikeMatmulOptions optionsOf(const Plan& plan, const auto& call) {
  const Value &ids = call.from.ids, weights = weightsOf(call);
  return {.rows = static_cast<unsigned>(dimension(plan, ids, 1)),
          .capacity = static_cast<unsigned>(dimension(plan, ids, 2)),
          .num_inputs = static_cast<unsigned>(dimension(plan, weights, 1)),
          .outputs = static_cast<unsigned>(dimension(plan, weights, 2)),
          .half_weights = isHalf(plan, weights),
          .long_ids = isLong(plan, ids)};
}

bool isEmpty(const builders::SpikeMatmulOptions& options) {
  return isAnyEmpty({options.rows, options.capacity, options.outputs});
}

// The layout of the weights, or of their gradient: row-major in blocks of columns, with a spare row of zeros after each
// block. Empty if the last block has spare columns, which no array layout allows.
std::optional<Blocks> blocksOf(const builders::SpikeMatmulOptions& options, const builders::TileRange& tiles) {
  if (tiles.count * tiles.columns != options.outputs) return std::nullopt;
  Blocks blocks;
  blocks.rows = blocks.row_block = options.num_inputs;
  blocks.columns = options.outputs;
  blocks.column_block = blocks.spare = tiles.columns;
  blocks.first_tile = tiles.first;
  return blocks;
}

// A value, or a result about to be computed, that is in that layout, as the builders take it; else not valid.
Tensor inPlace(Lowering& lowering, const builders::SpikeMatmulOptions& options, const builders::TileRange& tiles,
               ValueId value, bool is_result) {
  const std::optional<Blocks> blocks = blocksOf(options, tiles);
  if (!blocks || (is_result && !isMadeIn(lowering, *blocks, value))) return {};
  const Tensor memory = lowering.memoryIn(*blocks, value);
  return memory.valid() ? memory.reshape({tiles.count, memory.numElements() / tiles.count}) : memory;
}

// The variables of a product with weights, used in place if on their tiles, else copied there.
builders::SpikeMatmulTensors addTensors(Lowering& lowering, const builders::SpikeMatmulOptions& options,
                                        const auto& call) {
  const builders::TileRange tiles = builders::tilesOf(options, lowering.graph().getTarget().getNumTiles());
  const std::size_t rows = options.num_inputs;
  const Tensor in_place = inPlace(lowering, options, tiles, weightsOf(call), false);
  const auto tensors =
      builders::addSpikeMatmulTensors(lowering.graph(), options, builders::floatType(options.half_weights), in_place);
  if (in_place.valid()) {
    const Tensor zero = in_place.slice(rows * tiles.columns, (rows + 1) * tiles.columns, 1);
    lowering.program().add(builders::zeros(lowering.graph(), {zero}, lowering.debug("zero").getPathName()));
  } else {
    bringRows(lowering, operand(lowering, weightsOf(call)), tensors.weights, tiles, rows, options.outputs);
  }
  bring(lowering, operand(lowering, call.from.ids), tensors.ids);
  return tensors;
}

void bringCotangent(Lowering& lowering, const builders::SpikeMatmulOptions& options,
                    const builders::SpikeMatmulTensors& tensors, const Value& g) {
  bringRows(lowering, operand(lowering, g), tensors.out, tensors.tiles, options.rows, options.outputs);
}

void spikeMatmul(Lowering& lowering, const Instruction& instruction) {
  const Product call(instruction);
  const auto options = optionsOf(lowering.plan(), call);
  if (isEmpty(options)) return yieldZeros(lowering, instruction);
  const auto tensors = addTensors(lowering, options, call);
  bring(lowering, operand(lowering, call.from.values), tensors.values);
  lowering.program().add(builders::addSpikeMatmul(lowering.graph(), options, tensors));
  yield(lowering, call.to.out, asRows(tensors.out, tensors.tiles, options.rows, options.outputs));
}

void spikeMatmulSpikesBackward(Lowering& lowering, const Instruction& instruction) {
  const SpikesBackward call(instruction);
  const auto options = optionsOf(lowering.plan(), call);
  if (isEmpty(options)) return yieldZeros(lowering, instruction);
  const auto tensors = addTensors(lowering, options, call);
  bringCotangent(lowering, options, tensors, call.from.g);
  lowering.program().add(builders::addSpikeMatmulValuesGradient(lowering.graph(), options, tensors));
  yield(lowering, call.to.g_values, tensors.values);
}

void spikeMatmulWeightsBackward(Lowering& lowering, const Instruction& instruction) {
  const WeightsBackward call(instruction);
  const auto options = optionsOf(lowering.plan(), call);
  if (isEmpty(options)) return yieldZeros(lowering, instruction);
  const builders::TileRange tiles = builders::tilesOf(options, lowering.graph().getTarget().getNumTiles());
  const Tensor in_place = inPlace(lowering, options, tiles, weightsOf(call), true);
  const auto tensors = builders::addSpikeMatmulTensors(lowering.graph(), options, poplar::FLOAT, in_place);
  bring(lowering, operand(lowering, call.from.ids), tensors.ids);
  bring(lowering, operand(lowering, call.from.values), tensors.values);
  bringCotangent(lowering, options, tensors, call.from.g);
  lowering.program().add(builders::addSpikeMatmulWeightsGradient(lowering.graph(), options, tensors));
  if (in_place.valid()) return;
  yield(lowering, call.to.g_weights, asRows(tensors.weights, tiles, options.num_inputs, options.outputs));
}

template <typename Target>
std::vector<Proposal> proposeWeights(const Plan& plan, const Instruction& instruction, const poplar::Target& target) {
  const Target call(instruction);
  const auto options = optionsOf(plan, call);
  if (isEmpty(options)) return {};
  const builders::TileRange tiles = builders::tilesOf(options, target.getNumTiles());
  const std::optional<Blocks> blocks = blocksOf(options, tiles);
  return blocks ? std::vector<Proposal>{{weightsOf(call), *blocks}} : std::vector<Proposal>{};
}

void needTheirs(const OperationCheck& op, const Product& call) {
  op.need(call.from.weights.array.has_value(), "have floating weights");
}
void needTheirs(const OperationCheck& op, const SpikesBackward& call) {
  op.need(call.to.g_values.has_value(), "have the gradient of lists");
}
void needTheirs(const OperationCheck&, const WeightsBackward&) {}

template <typename Target>
void checkProduct(const OperationCheck& op) {
  const Target call(op.instruction());
  TargetCheck(op).need(call);
  op.need(call.from.ids.has_value(), "have lists of spikes");
  needTheirs(op, call);
}

}  // namespace

extern const Operation kSpikeMatmul = {checkProduct<Product>, spikeMatmul, proposeWeights<Product>};
extern const Operation kSpikeMatmulSpikesBackward = {checkProduct<SpikesBackward>, spikeMatmulSpikesBackward,
                                                     proposeWeights<SpikesBackward>};
extern const Operation kSpikeMatmulWeightsBackward = {checkProduct<WeightsBackward>, spikeMatmulWeightsBackward,
                                                      proposeWeights<WeightsBackward>};

}  // namespace snnjax::executor::targets
