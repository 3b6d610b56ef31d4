// Whether a plan makes sense: what is used has been defined, and shapes and types fit operations.
#pragma once

#include "executor/plan/plan.hpp"

namespace snnjax::executor {

// Throws Error where it does not.
void checkPlan(const Plan& plan);

// The shape and element type of what an instruction takes and gives (check_operations.cpp). Of own targets
// (custom_call) each checks its own.
void checkInstruction(const Plan& plan, const Instruction& instruction);

}  // namespace snnjax::executor
