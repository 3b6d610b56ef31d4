// Checks of loops and branches: what their blocks take and give.
#include "executor/plan/operation_check.hpp"

namespace snnjax::executor {
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
  constexpr std::size_t kMostTurns = std::size_t{1} << 32;
  const Instruction& loop = op.instruction();
  op.need(loop.blocks.size() == 1 && loop.ints.size() == 1, "have a body and a count");
  op.number(0, kMostTurns);
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

}  // namespace

std::vector<CheckOf> checksOfControlFlow() {
  return {{"while", checkWhile}, {"repeat", checkRepeat}, {"case", checkCase}};
}

}  // namespace snnjax::executor
