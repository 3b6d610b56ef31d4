// The targets of custom_call: the library's own ops, on the builders. Their names, operands and attributes are those of
// the CPU kernels (snnjax/ops), with one group.
#pragma once

#include "executor/operations.hpp"

namespace snnjax::executor::targets {

struct Target {
  Lower lower;
  Propose propose = nullptr;
};

}  // namespace snnjax::executor::targets
