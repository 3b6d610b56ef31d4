// The C++ of a codelet for an elementwise program: generated when a graph is built, as PopLibs does for fused
// expressions (popops::map).
#pragma once

#include <string>
#include <vector>

#include "elementwise/chain_code.hpp"
#include "elementwise/chain_cost.hpp"

namespace snnjax::elementwise {

// What every source includes, of poplar_kernels/.
inline constexpr const char* kChainHeader = "elementwise/elementwise_chain_registers.hpp";

struct ChainSource {
  std::string name;                // of the class, in namespace snnjax: the same code has the same name
  std::string text;                // a source file
  std::vector<ChainField> fields;  // of the class, beside `count`, its number of elements
};

// A pure function of a program and of where its rows lie, as chainCost() is.
ChainSource chainSource(const std::vector<ElementwiseProgram::Step>& steps,
                        const std::vector<ElementwiseProgram::Operand>& inputs, const std::vector<unsigned>& outputs);

}  // namespace snnjax::elementwise
