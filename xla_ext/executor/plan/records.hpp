// Forward records: results of an op that hold nothing yet, because what its backward pass reads stays on the tiles. A
// program may hand them on to a backward pass, here or in another program, which computes the forward pass again where
// it does not find what it reads; nothing else may use them.
#pragma once

#include <vector>

#include "executor/plan/plan.hpp"

namespace snnjax::executor {

// The operands of an instruction that are a record, and the results.
struct RecordPlaces {
  std::size_t first_input = 0, last_input = 0;  // [first, last)
  std::size_t first_output = kAtTheEnd;
};

// Which results of a plan are a record, or computed from one, if these parameters are. Throws if the host would be
// called with one.
std::vector<bool> recordsAmongResults(const Plan& plan, const std::vector<bool>& parameters);

}  // namespace snnjax::executor
