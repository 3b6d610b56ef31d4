// What the trees that make lists and sum their gradients cost in one time step, in cycles, for given groups and homes:
// accurate enough to choose by.
#pragma once

#include <cstddef>

namespace snnjax::builders {

struct NetworkPlan;

struct TreeChoice {
  unsigned group_tiles = 1;
  unsigned parts = 1;  // of a group's neurons, each listed by a worker of its own
  double cycles = 0;
};

// The fastest groups for layer `layer` if every layer's lists have `homes` homes.
TreeChoice cheapestTree(const NetworkPlan& plan, std::size_t layer, unsigned homes);

}  // namespace snnjax::builders
