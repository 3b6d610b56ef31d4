// The one table of operations: whether an instruction of a plan makes sense, and how it is lowered.
#pragma once

#include "executor/lowering.hpp"
#include "executor/plan/operation_check.hpp"

namespace snnjax::executor {

using Lower = void (*)(Lowering&, const Instruction&);
// Where an own op wants operands and results to lie.
using Propose = std::vector<Proposal> (*)(const Plan&, const Instruction&, const poplar::Target&);

struct Operation {
  // Whether an instruction makes sense; the library's own ops say so as they are lowered.
  void (*check)(const OperationCheck&);
  Lower lower;
  Propose propose = nullptr;
};

// By its name in the plan; throws where there is none.
const Operation& operationNamed(const std::string& name);

// The shape and element type of what an instruction takes and gives. Of own targets (custom_call) each checks its own.
void checkInstruction(const Plan& plan, const Instruction& instruction);

}  // namespace snnjax::executor
