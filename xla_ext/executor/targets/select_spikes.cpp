// The targets of `select_spikes`; arrays have a leading groups axis of length 1.
#include "builders/select_spikes.hpp"
#include <popops/Cast.hpp>
#include <popops/Reduce.hpp>

#include "executor/operations.hpp"
#include "executor/targets/operands.hpp"
#include "executor/targets/target_check.hpp"

namespace snnjax::executor::targets {
namespace {

using Selection = Call<select_spikes::Operands<Value>, select_spikes::Results<Value>>;
using SelectionBackward = Call<select_spikes::BackwardOperands<Value>, select_spikes::BackwardResults<Value>>;

builders::SelectSpikesOptions optionsOf(const Lowering& lowering, const Value& v, const Value& ids) {
  builders::SelectSpikesOptions options;
  options.rows = static_cast<unsigned>(dimension(lowering.plan(), v, 1));
  options.neurons = static_cast<unsigned>(dimension(lowering.plan(), v, 2));
  options.capacity = static_cast<unsigned>(dimension(lowering.plan(), ids, 2));
  options.half_membranes = isHalf(lowering.plan(), v);
  options.long_ids = isLong(lowering.plan(), ids);
  return options;
}

void selectSpikes(Lowering& lowering, const Instruction& instruction) {
  const Selection call(instruction);
  const auto options = optionsOf(lowering, call.from.v, call.to.ids);
  if (isAnyEmpty({options.rows, options.neurons})) return yieldZeros(lowering, instruction);
  const auto tensors = builders::addSelectSpikesTensors(lowering.graph(), options);
  bring(lowering, operand(lowering, call.from.v), tensors.v);
  bring(lowering, operand(lowering, call.from.threshold.array), tensors.threshold);
  bring(lowering, operand(lowering, call.from.second_threshold.array), tensors.second_threshold);
  lowering.program().add(builders::addSelectSpikes(lowering.graph(), options, tensors));
  const auto entries = [&](std::size_t first, std::size_t count) {
    return tensors.records.slice(first, first + count, 1);
  };
  yield(lowering, call.to.ids, entries(kListHeader, options.capacity));
  yield(lowering, call.to.values, tensors.values);
  yield(lowering, call.to.num_spikes, entries(kTrueSpikes, 1));
  yield(lowering, call.to.num_listed, entries(kListed, 1));
}

void selectSpikesBackward(Lowering& lowering, const Instruction& instruction) {
  const SelectionBackward call(instruction);
  const auto numbers = select_spikes::SurrogateNumbers::read(call.attributes);
  auto options = optionsOf(lowering, call.from.v, call.from.ids);
  options.surrogate = static_cast<Surrogate>(numbers.surrogate);
  options.slope = numbers.slope;
  if (isAnyEmpty({options.rows, options.neurons, options.capacity})) return yieldZeros(lowering, instruction);
  const auto tensors = builders::addSelectSpikesTensors(lowering.graph(), options);
  bring(lowering, operand(lowering, call.from.v), tensors.v);
  bring(lowering, operand(lowering, call.from.threshold.array), tensors.threshold);
  bring(lowering, operand(lowering, call.from.ids),
        tensors.records.slice(kListHeader, kListHeader + options.capacity, 1));
  bring(lowering, operand(lowering, call.from.g), tensors.values);
  auto gradients = builders::addSelectSpikesBackward(lowering.graph(), options, tensors, lowering.program());
  yield(lowering, call.to.g_v, gradients.v);
  if (dimension(lowering.plan(), call.to.g_threshold.array, 1) == 1) {
    gradients.threshold = popops::reduce(lowering.graph(), gradients.threshold, poplar::FLOAT, {0},
                                         popops::Operation::ADD, lowering.program(), lowering.debug("threshold"));
  }
  yield(lowering, call.to.g_threshold.array, gradients.threshold);
}

void needOnes(const OperationCheck& op, std::initializer_list<schema::Threshold<Value>> thresholds) {
  const auto is_known = [](const schema::Threshold<Value>& each) { return each.array.has_value(); };
  op.need(std::ranges::all_of(thresholds, is_known), "have one threshold, or one a neuron");
}

void checkSelectSpikes(const OperationCheck& op) {
  const Selection call(op.instruction());
  TargetCheck(op).need(call);
  needOnes(op, {call.from.threshold, call.from.second_threshold});
}

void checkSelectSpikesBackward(const OperationCheck& op) {
  const SelectionBackward call(op.instruction());
  TargetCheck(op).need(call);
  needOnes(op, {call.from.threshold, call.to.g_threshold});
  select_spikes::SurrogateNumbers::read(call.attributes);
}

}  // namespace

extern const Operation kSelectSpikes = {checkSelectSpikes, selectSpikes};
extern const Operation kSelectSpikesBackward = {checkSelectSpikesBackward, selectSpikesBackward};

}  // namespace snnjax::executor::targets
