// The targets of `lif_step`: v and current [1, rows, neurons], decay, threshold and gain [1, neurons] or [1, 1].
#include <builders/lif_step.hpp>
#include <popops/Reduce.hpp>

#include "executor/operations.hpp"
#include "executor/targets/operands.hpp"
#include "executor/targets/target_check.hpp"

namespace snnjax::executor::targets {
namespace {

constexpr std::size_t kOperands = 5;

// Of the CPU's numbers, which are those of the attributes, to the codelets' (snnjax.ops.lif_step.RESETS and
// RESET_TIMES).
builders::LifStepOptions optionsOf(const Lowering& lowering, const Instruction& instruction) {
  builders::LifStepOptions options;
  options.rows = static_cast<unsigned>(dimension(lowering, instruction.inputs[0], 1));
  options.neurons = static_cast<unsigned>(dimension(lowering, instruction.inputs[0], 2));
  options.half_membranes = isHalf(lowering.plan(), instruction, 0);
  options.reset = static_cast<Reset>(number(instruction, "reset"));
  options.reset_time = static_cast<ResetTime>(number(instruction, "reset_time"));
  options.detach_reset = flag(instruction, "detach_reset");
  options.spike_from_old = flag(instruction, "takes_old_spikes");
  options.inclusive = flag(instruction, "inclusive");
  options.surrogate = static_cast<Surrogate>(number(instruction, "surrogate"));
  options.slope = real(instruction, "slope");
  return options;
}

// An array [rows, neurons], or constants as one row of them.
void bringRows(Lowering& lowering, const builders::TileRange& tiles, const poplar::Tensor& from,
               const poplar::Tensor& to, std::size_t rows, std::size_t neurons) {
  zeroBeside(lowering.graph(), to, tiles, rows, neurons);
  bring(lowering, from, asRows(to, tiles, rows, neurons));
}

builders::LifStepTensors bringOperands(Lowering& lowering, const Instruction& instruction,
                                       const builders::LifStepOptions& options) {
  auto tensors = builders::addLifStepTensors(lowering.graph(), options);
  const poplar::Tensor* const to[] = {&tensors.v, &tensors.current, &tensors.decay, &tensors.threshold, &tensors.gain};
  for (std::size_t i = 0; i < kOperands; ++i) {
    bringRows(lowering, tensors.tiles, operand(lowering, instruction, i), *to[i], i < 2 ? options.rows : 1,
              options.neurons);
  }
  return tensors;
}

// The cotangent of a constant, of which each worker of each tile has a part: [tiles, workers * columns].
void yieldConstant(Lowering& lowering, const Instruction& instruction, std::size_t index,
                   const builders::TileRange& tiles, const poplar::Tensor& parts, std::size_t neurons) {
  const std::size_t workers = parts.dim(1) / tiles.columns;
  poplar::Tensor rows = asRows(parts, tiles, workers, neurons);
  if (dimension(lowering, instruction.outputs[index], 1) == 1) rows = rows.flatten().expand({1});
  const poplar::Tensor sum = popops::reduce(lowering.graph(), rows, poplar::FLOAT, {0}, popops::Operation::ADD,
                                            lowering.program(), lowering.debug("constants"));
  yield(lowering, instruction, index, sum);
}

// (v, current, decay, threshold, gain) -> v_new, spikes
void lifStep(Lowering& lowering, const Instruction& instruction) {
  const auto options = optionsOf(lowering, instruction);
  if (isAnyEmpty({options.rows, options.neurons})) return yieldZeros(lowering, instruction);
  const auto tensors = bringOperands(lowering, instruction, options);
  lowering.program().add(builders::addLifStep(lowering.graph(), options, tensors));
  yield(lowering, instruction, 0, asRows(tensors.v_new, tensors.tiles, options.rows, options.neurons));
  yield(lowering, instruction, 1, asRows(tensors.spikes, tensors.tiles, options.rows, options.neurons));
}

// The same operands, then the cotangents of both results -> those of the operands
void lifStepBackward(Lowering& lowering, const Instruction& instruction) {
  const auto options = optionsOf(lowering, instruction);
  if (isAnyEmpty({options.rows, options.neurons})) return yieldZeros(lowering, instruction);
  const auto tensors = bringOperands(lowering, instruction, options);
  const auto cotangents = builders::addLifStepCotangents(lowering.graph(), options, tensors);
  const builders::TileRange& tiles = tensors.tiles;
  bringRows(lowering, tiles, operand(lowering, instruction, kOperands), cotangents.g_v_new, options.rows,
            options.neurons);
  bringRows(lowering, tiles, operand(lowering, instruction, kOperands + 1), cotangents.g_spikes, options.rows,
            options.neurons);
  lowering.program().add(builders::addLifStepBackward(lowering.graph(), options, tensors, cotangents));
  yield(lowering, instruction, 0, asRows(cotangents.g_v, tiles, options.rows, options.neurons));
  yield(lowering, instruction, 1, asRows(cotangents.g_current, tiles, options.rows, options.neurons));
  yieldConstant(lowering, instruction, 2, tiles, cotangents.g_decay, options.neurons);
  yieldConstant(lowering, instruction, 3, tiles, cotangents.g_threshold, options.neurons);
  yieldConstant(lowering, instruction, 4, tiles, cotangents.g_gain, options.neurons);
}

void checkConvention(const TargetCheck& check) {
  check.needNumber("reset", Reset::None + 1);
  check.needNumber("reset_time", ResetTime::Immediate + 1);
  for (const char* name : {"detach_reset", "takes_old_spikes", "inclusive"}) flag(check.op().instruction(), name);
  check.needSurrogate();
}

// v and current, then decay, threshold and gain, or their cotangents.
template <class Arrays>
void checkArrays(const TargetCheck& check, const Shape& rows, const Arrays& arrays) {
  for (std::size_t i = 0; i < kOperands; ++i) {
    if (i < 2) {
      check.need(arrays(i), Numbers::kFloats, rows);
    } else {
      check.needConstant(arrays(i), rows[1]);
    }
  }
}

void checkLifStep(const OperationCheck& op) {
  const TargetCheck check(op);
  check.needCounts(kOperands, 2);
  const Shape rows = check.sizes(op.input(0), 2);
  checkArrays(check, rows, [&](std::size_t i) { return op.input(i); });
  for (std::size_t i = 0; i < 2; ++i) check.need(op.output(i), Numbers::kFloats, rows);
  checkConvention(check);
}

void checkLifStepBackward(const OperationCheck& op) {
  const TargetCheck check(op);
  check.needCounts(kOperands + 2, kOperands);
  const Shape rows = check.sizes(op.input(0), 2);
  checkArrays(check, rows, [&](std::size_t i) { return op.input(i); });
  checkArrays(check, rows, [&](std::size_t i) { return op.output(i); });
  for (std::size_t i = kOperands; i < op.numInputs(); ++i) check.need(op.input(i), Numbers::kFloats, rows);
  checkConvention(check);
}

}  // namespace

extern const Operation kLifStep = {checkLifStep, lifStep};
extern const Operation kLifStepBackward = {checkLifStepBackward, lifStepBackward};

}  // namespace snnjax::executor::targets
