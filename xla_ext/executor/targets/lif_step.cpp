// The targets of `lif_step`; arrays have a leading groups axis of length 1.
#include <builders/lif_step.hpp>
#include <popops/Reduce.hpp>

#include "executor/operations.hpp"
#include "executor/targets/operands.hpp"
#include "executor/targets/target_check.hpp"

namespace snnjax::executor::targets {
namespace {

using Step = Call<lif_step::Operands<Value>, lif_step::Results<Value>>;
using StepBackward = Call<lif_step::BackwardOperands<Value>, lif_step::Operands<Value>>;

// Of the CPU's numbers, which are those of the attributes, to the codelets' (snnjax.ops.lif_step.RESETS and
// RESET_TIMES).
builders::LifStepOptions optionsOf(const Lowering& lowering, const Attributes& attributes, const Value& v) {
  const auto numbers = lif_step::StepNumbers::read(attributes);
  builders::LifStepOptions options;
  options.rows = static_cast<unsigned>(dimension(lowering, v, 1));
  options.neurons = static_cast<unsigned>(dimension(lowering, v, 2));
  options.half_membranes = isHalf(lowering.plan(), v);
  options.reset = static_cast<Reset>(numbers.reset);
  options.reset_time = static_cast<ResetTime>(numbers.reset_time);
  options.detach_reset = numbers.detach_reset;
  options.spike_from_old = numbers.takes_old_spikes;
  options.inclusive = numbers.inclusive;
  options.surrogate = static_cast<Surrogate>(numbers.surrogate);
  options.slope = numbers.slope;
  return options;
}

// An array [rows, neurons], or constants as one row of them.
void bringRows(Lowering& lowering, const builders::TileRange& tiles, const Value& from, const poplar::Tensor& to,
               std::size_t rows, std::size_t neurons) {
  zeroBeside(lowering.graph(), to, tiles, rows, neurons);
  bring(lowering, operand(lowering, from), asRows(to, tiles, rows, neurons));
}

builders::LifStepTensors bringOperands(Lowering& lowering, const lif_step::Operands<Value>& from,
                                       const builders::LifStepOptions& options) {
  auto tensors = builders::addLifStepTensors(lowering.graph(), options);
  const auto bringTo = [&](const Value& value, const poplar::Tensor& to, std::size_t rows) {
    bringRows(lowering, tensors.tiles, value, to, rows, options.neurons);
  };
  bringTo(from.v, tensors.v, options.rows);
  bringTo(from.current, tensors.current, options.rows);
  bringTo(from.decay, tensors.decay, 1);
  bringTo(from.threshold, tensors.threshold, 1);
  bringTo(from.gain, tensors.gain, 1);
  return tensors;
}

// The cotangent of a constant, of which each worker of each tile has a part: [tiles, workers * columns].
void yieldConstant(Lowering& lowering, const Value& result, const builders::TileRange& tiles,
                   const poplar::Tensor& parts, std::size_t neurons) {
  const std::size_t workers = parts.dim(1) / tiles.columns;
  poplar::Tensor rows = asRows(parts, tiles, workers, neurons);
  if (dimension(lowering, result, 1) == 1) rows = rows.flatten().expand({1});
  const poplar::Tensor sum = popops::reduce(lowering.graph(), rows, poplar::FLOAT, {0}, popops::Operation::ADD,
                                            lowering.program(), lowering.debug("constants"));
  yield(lowering, result, sum);
}

void lifStep(Lowering& lowering, const Instruction& instruction) {
  const Step call(instruction);
  const auto options = optionsOf(lowering, call.attributes, call.from.v);
  if (isAnyEmpty({options.rows, options.neurons})) return yieldZeros(lowering, instruction);
  const auto tensors = bringOperands(lowering, call.from, options);
  lowering.program().add(builders::addLifStep(lowering.graph(), options, tensors));
  yield(lowering, call.to.v, asRows(tensors.v_new, tensors.tiles, options.rows, options.neurons));
  yield(lowering, call.to.spikes, asRows(tensors.spikes, tensors.tiles, options.rows, options.neurons));
}

void lifStepBackward(Lowering& lowering, const Instruction& instruction) {
  const StepBackward call(instruction);
  const auto options = optionsOf(lowering, call.attributes, call.from.operands.v);
  if (isAnyEmpty({options.rows, options.neurons})) return yieldZeros(lowering, instruction);
  const auto tensors = bringOperands(lowering, call.from.operands, options);
  const auto cotangents = builders::addLifStepCotangents(lowering.graph(), options, tensors);
  const builders::TileRange& tiles = tensors.tiles;
  bringRows(lowering, tiles, call.from.g.v, cotangents.g_v_new, options.rows, options.neurons);
  bringRows(lowering, tiles, call.from.g.spikes, cotangents.g_spikes, options.rows, options.neurons);
  lowering.program().add(builders::addLifStepBackward(lowering.graph(), options, tensors, cotangents));
  yield(lowering, call.to.v, asRows(cotangents.g_v, tiles, options.rows, options.neurons));
  yield(lowering, call.to.current, asRows(cotangents.g_current, tiles, options.rows, options.neurons));
  yieldConstant(lowering, call.to.decay, tiles, cotangents.g_decay, options.neurons);
  yieldConstant(lowering, call.to.threshold, tiles, cotangents.g_threshold, options.neurons);
  yieldConstant(lowering, call.to.gain, tiles, cotangents.g_gain, options.neurons);
}

template <typename Target>
void checkStep(const OperationCheck& op) {
  const Target call(op.instruction());
  TargetCheck(op).need(call);
  const auto numbers = lif_step::StepNumbers::read(call.attributes);
  knownNumber(op.instruction(), "reset", numbers.reset, Reset::None + 1);
  knownNumber(op.instruction(), "reset_time", numbers.reset_time, ResetTime::Immediate + 1);
  knownNumber(op.instruction(), "surrogate", numbers.surrogate, Surrogate::StraightThrough + 1);
}

}  // namespace

extern const Operation kLifStep = {checkStep<Step>, lifStep};
extern const Operation kLifStepBackward = {checkStep<StepBackward>, lifStepBackward};

}  // namespace snnjax::executor::targets
