// Loops and branches on the device.
#include "executor/registry.hpp"

namespace snnjax::executor::ops {
namespace {

using poplar::program::Sequence;

// The loop's values get places that stay the same for all turns: those of the initial values where nothing else needs
// them, else others into which they are copied.
void placeCarried(Lowering& lowering, const Instruction& loop) {
  for (std::size_t i = 0; i < loop.inputs.size(); ++i) {
    if (lowering.takeOver(loop.outputs[i], loop.inputs[i])) continue;
    lowering.copy(loop.inputs[i], lowering.make(loop.outputs[i]));
  }
}

// A body, or a branch: what it gives is brought to where the outputs lie, if it does not lie there.
Sequence turn(Lowering& lowering, const Instruction& instruction, const Block& body) {
  lowering.carry(instruction.outputs, body, true);
  const Sequence sequence = lowering.lower(body, [&] { lowering.moveAll(body.results, instruction.outputs); });
  lowering.endCarry(instruction.outputs);
  return sequence;
}

}  // namespace

void whileLoop(Lowering& lowering, const Instruction& instruction) {
  placeCarried(lowering, instruction);
  const Block &condition = instruction.blocks[0], &body = instruction.blocks[1];
  // Its place is the same for the condition before the first turn and after each.
  const poplar::Tensor goes_on = lowering.makeTemporary(poplar::BOOL, {});
  lowering.carry(instruction.outputs, condition, false);
  const Sequence test = lowering.lower(condition, [&] { lowering.copy(condition.results[0], goes_on); });
  lowering.endCarry(instruction.outputs);
  const Sequence once = turn(lowering, instruction, body);
  lowering.program().add(poplar::program::RepeatWhileTrue(test, goes_on, once, lowering.debug()));
}

void repeat(Lowering& lowering, const Instruction& instruction) {
  placeCarried(lowering, instruction);
  const Sequence once = turn(lowering, instruction, instruction.blocks[0]);
  const auto count = static_cast<unsigned>(instruction.ints[0][0]);
  if (count > 0) lowering.program().add(poplar::program::Repeat(count, once, lowering.debug()));
}

void caseOf(Lowering& lowering, const Instruction& instruction) {
  const std::vector<Block>& branches = instruction.blocks;
  const poplar::Tensor index = lowering.get(instruction.inputs[0]).flatten()[0];
  for (const ValueId output : instruction.outputs) lowering.make(output);
  std::vector<poplar::program::Switch::Case> cases;
  for (std::size_t i = 0; i + 1 < branches.size(); ++i) {
    cases.emplace_back(static_cast<std::int32_t>(i), turn(lowering, instruction, branches[i]));
  }
  const Sequence last = turn(lowering, instruction, branches.back());
  lowering.program().add(poplar::program::Switch(index, cases, last, lowering.debug()));
}

}  // namespace snnjax::executor::ops
