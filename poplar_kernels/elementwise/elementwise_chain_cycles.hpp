// What an elementwise chain costs a worker, in issue slots: as code generated from its program, also where the codelets
// of elementwise_chain.cpp interpret it. The executor counts the bundles of the code's loop (xla_ext/executor/plan/
// chain_cost.cpp says by which rules). The loop takes four elements at a time; of what remains, two are taken together.
#pragma once

#include "../issue_slots.hpp"

namespace snnjax::cycles {

// The call; the count and the tables of rows; the worker's share, whose divisor is a constant; which loops run.
constexpr Slots kChainPrologue = kCall + 3 + 14 + 4;

// `rows` are the slots that get pointers and constants into registers.
constexpr Slots chain(Slots elements, Slots rows, Slots four, Slots two, Slots one) {
  return kChainPrologue + rows + elements / 4 * four + elements % 4 / 2 * two + elements % 2 * one;
}

}  // namespace snnjax::cycles
