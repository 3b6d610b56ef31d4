// Where the layers of a network without recurrent weights lie if each runs over all steps before the next one.
#pragma once

#include "network_plan.hpp"

namespace snnjax::builders {

// Places layers and homes of lists, of which the plan has sizes. Returns false, with the plan as it was, where a layer
// is recurrent or the tiles have too little memory for all steps.
bool placeScan(NetworkPlan& plan, std::size_t bytes_per_tile);

}  // namespace snnjax::builders
