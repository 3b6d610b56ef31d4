// Where layers and lists of a network lie, and how many steps run at once.
#pragma once

#include "builders/layout/network_plan.hpp"

namespace snnjax::builders {

// Places layers and homes of lists, of which the plan has sizes: the fastest layout that fits into the tiles. Throws
// Error (resource exhausted) if none does.
void place(NetworkPlan& plan);

}  // namespace snnjax::builders
