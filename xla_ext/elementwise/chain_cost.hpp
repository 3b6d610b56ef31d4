// What the code of an elementwise program costs a worker; chain_code.cpp says what that code is.
#pragma once

#include <vector>

#include "elementwise/program.hpp"

namespace snnjax::elementwise {

// In issue slots of a worker.
struct ChainCost {
  unsigned pointers = 0;                // to bring pointers and constants into registers
  unsigned four = 0, two = 0, one = 0;  // the body of the loop for so many elements, its branch included
  unsigned at_once = 4;                 // how many elements of four are processed together
};

// `inputs` says where the inputs lie, `outputs` which rows the outputs are among those of their width.
ChainCost chainCost(const std::vector<ElementwiseProgram::Step>& steps,
                    const std::vector<ElementwiseProgram::Operand>& inputs, const std::vector<unsigned>& outputs);

}  // namespace snnjax::elementwise
