// The targets of `select_spikes`: v [1, rows, neurons], thresholds [1, 1] or [1, neurons].
#include <builders/select_spikes.hpp>
#include <popops/Cast.hpp>
#include <popops/Reduce.hpp>

#include "executor/operations.hpp"
#include "executor/targets/operands.hpp"
#include "executor/targets/target_check.hpp"

namespace snnjax::executor::targets {
namespace {

builders::SelectSpikesOptions optionsOf(const Lowering& lowering, const Instruction& instruction, ValueId ids) {
  builders::SelectSpikesOptions options;
  options.rows = static_cast<unsigned>(dimension(lowering, instruction.inputs[0], 1));
  options.neurons = static_cast<unsigned>(dimension(lowering, instruction.inputs[0], 2));
  options.capacity = static_cast<unsigned>(dimension(lowering, ids, 2));
  options.half_membranes = isHalf(lowering.plan(), instruction, 0);
  options.long_ids = lowering.type(ids).dtype == Dtype::kInt32;
  return options;
}

// Unsigned shorts or ints of a header as int32.
void yieldCounts(Lowering& lowering, const Instruction& instruction, std::size_t index, const poplar::Tensor& records,
                 std::size_t entry) {
  yield(lowering, instruction, index, records.slice(entry, entry + 1, 1));
}

// (v, threshold, second_threshold) -> ids, values, num_spikes, num_listed
void selectSpikes(Lowering& lowering, const Instruction& instruction) {
  const auto options = optionsOf(lowering, instruction, instruction.outputs[0]);
  if (isAnyEmpty({options.rows, options.neurons})) return yieldZeros(lowering, instruction);
  const auto tensors = builders::addSelectSpikesTensors(lowering.graph(), options);
  bring(lowering, operand(lowering, instruction, 0), tensors.v);
  bring(lowering, operand(lowering, instruction, 1), tensors.threshold);
  bring(lowering, operand(lowering, instruction, 2), tensors.second_threshold);
  lowering.program().add(builders::addSelectSpikes(lowering.graph(), options, tensors));
  const std::size_t first = kListHeader;
  yield(lowering, instruction, 0, tensors.records.slice(first, first + options.capacity, 1));
  yield(lowering, instruction, 1, tensors.values);
  yieldCounts(lowering, instruction, 2, tensors.records, kTrueSpikes);
  yieldCounts(lowering, instruction, 3, tensors.records, kListed);
}

// (v, threshold, ids, cotangent of the values) -> cotangents of v and threshold
void selectSpikesBackward(Lowering& lowering, const Instruction& instruction) {
  auto options = optionsOf(lowering, instruction, instruction.inputs[2]);
  options.surrogate = static_cast<Surrogate>(number(instruction, "surrogate"));
  options.slope = real(instruction, "slope");
  if (isAnyEmpty({options.rows, options.neurons, options.capacity})) return yieldZeros(lowering, instruction);
  const auto tensors = builders::addSelectSpikesTensors(lowering.graph(), options);
  const auto cotangents = builders::addSelectSpikesCotangents(lowering.graph(), options, tensors);
  const std::size_t first = kListHeader;
  bring(lowering, operand(lowering, instruction, 0), tensors.v);
  bring(lowering, operand(lowering, instruction, 1), tensors.threshold);
  bring(lowering, operand(lowering, instruction, 2), tensors.records.slice(first, first + options.capacity, 1));
  bring(lowering, operand(lowering, instruction, 3), cotangents.g_values);
  lowering.program().add(builders::addSelectSpikesBackward(lowering.graph(), options, tensors, cotangents));
  yield(lowering, instruction, 0, cotangents.g_v);
  poplar::Tensor g_threshold = cotangents.g_threshold;
  if (dimension(lowering, instruction.outputs[1], 1) == 1) {
    g_threshold = popops::reduce(lowering.graph(), g_threshold, poplar::FLOAT, {0}, popops::Operation::ADD,
                                 lowering.program(), lowering.debug("threshold"));
  }
  yield(lowering, instruction, 1, g_threshold);
}

// [rows, capacity], for membranes [rows, neurons].
Shape listsOf(const TargetCheck& check, const Shape& rows, const ArrayType& ids) {
  return {rows[0], check.sizes(ids, 2)[1]};
}

void checkSelectSpikes(const OperationCheck& op) {
  const TargetCheck check(op);
  check.needCounts(3, 4);
  const Shape rows = check.sizes(op.input(0), 2), lists = listsOf(check, rows, op.output(0));
  check.need(op.input(0), Numbers::kFloats, rows);
  for (const std::size_t threshold : {1U, 2U}) check.needConstant(op.input(threshold), rows[1]);
  check.need(op.output(0), Numbers::kIds, lists);
  check.need(op.output(1), Numbers::kFloats, lists);
  for (const std::size_t count : {2U, 3U}) check.need(op.output(count), Numbers::kCounts, {rows[0]});
}

void checkSelectSpikesBackward(const OperationCheck& op) {
  const TargetCheck check(op);
  check.needCounts(4, 2);
  const Shape rows = check.sizes(op.input(0), 2), lists = listsOf(check, rows, op.input(2));
  check.need(op.input(0), Numbers::kFloats, rows);
  check.needConstant(op.input(1), rows[1]);
  check.need(op.input(2), Numbers::kIds, lists);
  check.need(op.input(3), Numbers::kFloats, lists);
  check.need(op.output(0), Numbers::kFloats, rows);
  check.needConstant(op.output(1), rows[1]);
  check.needSurrogate();
}

}  // namespace

extern const Operation kSelectSpikes = {checkSelectSpikes, selectSpikes};
extern const Operation kSelectSpikesBackward = {checkSelectSpikesBackward, selectSpikesBackward};

}  // namespace snnjax::executor::targets
