// Where own ops want their operands and results to lie. A proposal for one value holds for all that lie with it: those
// of the same elementwise operations and loops, views of the same order, and results in a parameter's memory; so
// weights lie where the op multiplies with them. What is updated keeps to it only where that is about as even.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "executor/layouts/layout.hpp"
#include "executor/plan/plan.hpp"

namespace snnjax::executor {

struct Proposal {
  ValueId value;
  Blocks blocks;
};

// The layout that each value gets, if a proposal reaches it; of several the first.
std::unordered_map<ValueId, std::shared_ptr<const Layout>> spreadProposals(const Plan& plan,
                                                                           const std::vector<Proposal>& proposals,
                                                                           std::size_t tiles);

// Whether an instruction's one result is its one input with other dimensions of size 1, or as another type: the same
// elements in the same order.
bool keepsOrder(const Plan& plan, const Instruction& instruction);

}  // namespace snnjax::executor
