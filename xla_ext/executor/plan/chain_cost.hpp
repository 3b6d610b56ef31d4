// What the code that an elementwise program stands for costs a worker; chain_cost.cpp says what that code is.
#pragma once

#include <vector>

#include "executor/plan/elementwise_program.hpp"

namespace snnjax::executor {

// In issue slots of a worker.
struct ChainCost {
  unsigned pointers = 0;                // to bring pointers and constants into registers
  unsigned four = 0, two = 0, one = 0;  // the body of the loop for so many elements, its branch included
};

// `inputs` says where the inputs lie.
ChainCost chainCost(const std::vector<ElementwiseProgram::Step>& steps,
                    const std::vector<ElementwiseProgram::Operand>& inputs);

}  // namespace snnjax::executor
