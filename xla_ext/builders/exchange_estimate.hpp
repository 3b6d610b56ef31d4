// What the exchanges of one time step cost, in cycles, for a choice of groups and homes: enough to choose by.
#pragma once

#include <cstddef>

namespace snnjax::builders {

struct NetworkPlan;

struct TreeChoice {
  unsigned group_tiles = 1;
  double cycles = 0;
};

// The number of tiles a group with which layer `layer` exchanges fastest if every layer's lists have `homes` homes.
TreeChoice cheapestGroup(const NetworkPlan& plan, std::size_t layer, unsigned homes);

}  // namespace snnjax::builders
