// The one table of operations: how an instruction of a plan is checked and lowered.
#pragma once

#include <vector>

#include "executor/lowering.hpp"
#include "executor/plan/operation_check.hpp"

namespace snnjax::executor {

using Lower = void (*)(Lowering&, const Instruction&);
// The layouts that an own op proposes for operands and results.
using Propose = std::vector<Proposal> (*)(const Plan&, const Instruction&, const poplar::Target&);

// Memory that an operation will ask for besides that of its values: a call of Lowering::makeScratch.
struct ScratchCall {
  std::size_t element_bytes;
  std::vector<std::size_t> counts;  // by tile; empty: of none
};
using Scratch = std::vector<ScratchCall> (*)(const Plan&, const Layouts&, const Instruction&);

struct Operation {
  // Throws unless a lowering can take the instruction: nothing in it is trusted before.
  void (*check)(const OperationCheck&);
  Lower lower;
  Propose propose = nullptr;
  Scratch scratch = nullptr;  // where it is so much that operations should share it
};

// By its name in the plan; throws if there is none.
const Operation& operationNamed(const std::string& name);

// Checks the shapes and element types of an instruction's inputs and outputs, and its numbers and texts.
void checkInstruction(const Plan& plan, const Instruction& instruction);

}  // namespace snnjax::executor
