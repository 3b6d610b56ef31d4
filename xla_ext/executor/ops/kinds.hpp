// The operations of reductions, running results and scatters, as codelets name them.
#pragma once

#include <poplar/Type.hpp>
#include <string>

#include "executor/plan/plan.hpp"

namespace snnjax::executor::ops {

// What codelets of a kind work on, and their name for it: "snnjax::Sum" in FLOAT, "snnjax::BitAnd" in UNSIGNED_INT.
// The name is empty if there is none.
struct Kind {
  std::string name;
  poplar::Type type;
};

Kind kindOf(const std::string& kind, Dtype dtype);

// The number that changes nothing, for an empty reduction.
double neutralOf(const std::string& kind, Dtype dtype);

}  // namespace snnjax::executor::ops
