// The programs of `elementwise` (README.md), as plans have them.
#pragma once

#include <string>
#include <vector>

#include "elementwise/program.hpp"
#include "executor/plan/plan.hpp"

namespace snnjax::executor {

using elementwise::ElementwiseProgram;

// What is wrong with an instruction's program for inputs and outputs of these types, as "must ..."; or nothing.
std::string elementwiseProblem(const Instruction& instruction, const std::vector<Dtype>& inputs,
                               const std::vector<Dtype>& outputs);

// Of a valid instruction.
ElementwiseProgram elementwiseProgram(const Instruction& instruction);

}  // namespace snnjax::executor
