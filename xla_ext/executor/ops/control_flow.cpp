// Loops and branches on the device, and calls of functions of the host.
#include "executor/operations.hpp"

namespace snnjax::executor::ops {
namespace {

void needTypes(const OperationCheck& op, const std::vector<ValueId>& values, const std::vector<ValueId>& like) {
  op.need(values.size() == like.size(), "have blocks that fit its values");
  for (std::size_t i = 0; i < values.size(); ++i) {
    op.need(op.type(values[i]) == op.type(like[i]), "have blocks that fit the types of its values");
  }
}

void checkBody(const OperationCheck& op, const Block& body) {
  const Instruction& loop = op.instruction();
  needTypes(op, loop.outputs, loop.inputs);
  needTypes(op, body.parameters, loop.inputs);
  needTypes(op, body.results, loop.inputs);
}

void checkWhile(const OperationCheck& op) {
  const Instruction& loop = op.instruction();
  op.need(loop.blocks.size() == 2, "have a condition and a body");
  const Block& condition = loop.blocks[0];
  needTypes(op, condition.parameters, loop.inputs);
  op.need(condition.results.size() == 1, "have a condition with one result");
  const ArrayType& result = op.type(condition.results[0]);
  op.need(result.dtype == Dtype::kBool && result.numElements() == 1, "have a condition that gives a bool");
  checkBody(op, loop.blocks[1]);
}

void checkRepeat(const OperationCheck& op) {
  constexpr std::size_t kMostIterations = std::size_t{1} << 32;
  const Instruction& loop = op.instruction();
  op.need(loop.blocks.size() == 1 && loop.ints.size() == 1, "have a body and a count");
  op.number(0, kMostIterations);
  checkBody(op, loop.blocks[0]);
}

void checkCase(const OperationCheck& op) {
  const Instruction& choice = op.instruction();
  op.need(op.numInputs() == 1 && !choice.blocks.empty(), "have an index and a branch");
  op.need(op.input(0).dtype == Dtype::kInt32 && op.input(0).numElements() == 1, "have an index of int32");
  for (const Block& branch : choice.blocks) {
    op.need(branch.parameters.empty(), "have branches without parameters");
    needTypes(op, branch.results, choice.outputs);
  }
}

void checkCallback(const OperationCheck& op) {
  op.needCounts(op.numInputs(), op.numOutputs(), 1);
  op.need(op.ints(0).size() == 1, "have a number");
}

using poplar::program::Sequence;

// The loop's values have fixed places in all iterations: those of the initial values where nothing else needs them,
// else new ones into which they are copied.
void placeCarried(Lowering& lowering, const Instruction& loop) {
  for (std::size_t i = 0; i < loop.inputs.size(); ++i) {
    if (lowering.takeOver(loop.outputs[i], loop.inputs[i])) continue;
    lowering.copy(loop.inputs[i], lowering.make(loop.outputs[i]));
  }
}

// A body or branch: its results are copied to the outputs' places if they are elsewhere.
Sequence lowered(Lowering& lowering, const Instruction& instruction, const Block& body) {
  lowering.carry(instruction.outputs, body, true);
  const Sequence sequence = lowering.lower(body, [&] { lowering.moveAll(body.results, instruction.outputs); });
  lowering.endCarry(instruction.outputs);
  return sequence;
}

void whileLoop(Lowering& lowering, const Instruction& instruction) {
  placeCarried(lowering, instruction);
  const Block &condition = instruction.blocks[0], &body = instruction.blocks[1];
  // Its place is the same for the condition before the first iteration and after each.
  const poplar::Tensor goes_on = lowering.makeTemporary(poplar::BOOL, {});
  lowering.carry(instruction.outputs, condition, false);
  const Sequence test = lowering.lower(condition, [&] { lowering.copy(condition.results[0], goes_on); });
  lowering.endCarry(instruction.outputs);
  const Sequence once = lowered(lowering, instruction, body);
  lowering.program().add(poplar::program::RepeatWhileTrue(test, goes_on, once, lowering.debug()));
}

void repeat(Lowering& lowering, const Instruction& instruction) {
  placeCarried(lowering, instruction);
  const Sequence once = lowered(lowering, instruction, instruction.blocks[0]);
  const auto count = static_cast<unsigned>(instruction.ints[0][0]);
  if (count > 0) lowering.program().add(poplar::program::Repeat(count, once, lowering.debug()));
}

void caseOf(Lowering& lowering, const Instruction& instruction) {
  const std::vector<Block>& branches = instruction.blocks;
  const poplar::Tensor index = lowering.get(instruction.inputs[0]).flatten()[0];
  for (const ValueId output : instruction.outputs) lowering.make(output);
  std::vector<poplar::program::Switch::Case> cases;
  for (std::size_t i = 0; i + 1 < branches.size(); ++i) {
    cases.emplace_back(static_cast<std::int32_t>(i), lowered(lowering, instruction, branches[i]));
  }
  const Sequence last = lowered(lowering, instruction, branches.back());
  lowering.program().add(poplar::program::Switch(index, cases, last, lowering.debug()));
}

void callback(Lowering& lowering, const Instruction& instruction) {
  std::vector<poplar::Tensor> arrays;
  for (const ValueId value : instruction.inputs) arrays.push_back(lowering.get(value).flatten());
  std::vector<poplar::Tensor> results;
  for (const ValueId value : instruction.outputs) results.push_back(lowering.make(value).flatten());
  const poplar::HostFunction function =
      lowering.hostFunction(instruction.ints[0][0], instruction.inputs, instruction.outputs);
  lowering.program().add(poplar::program::Call(function, arrays, results, lowering.debug()));
}

}  // namespace

extern const Operation kWhile = {checkWhile, whileLoop};
extern const Operation kRepeat = {checkRepeat, repeat};
extern const Operation kCase = {checkCase, caseOf};
extern const Operation kCallback = {checkCallback, callback};

}  // namespace snnjax::executor::ops
