// Where the layers of a network lie if each runs over all steps before the next one.
#pragma once

#include "network_plan.hpp"

namespace snnjax::builders {

constexpr unsigned kWorkers = 6;  // of a tile

// Places layers and homes of lists, of which the plan has sizes. Returns false, with the plan as it was, where the
// tiles have too little memory for all steps.
bool placeScan(NetworkPlan& plan, std::size_t bytes_per_tile);

// Whether more neurons may fire than a list takes.
inline bool canOverflow(const ListPlan& list) { return list.capacity < list.num_neurons; }

// How the dot products of all blocks with listed entries are summed: rows in `parts`, whose sums their readers add,
// each part in `runs` of an even number of entries, the last of which may be shorter.
struct SumsPlan {
  unsigned parts = 1, runs = 1, of_run = 0;
  double cycles = 0;
};
SumsPlan planSums(unsigned blocks, unsigned entries);

}  // namespace snnjax::builders
