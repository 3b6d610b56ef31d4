// What a plan asks of any machine, counted from its shapes as XLA's cost analysis counts.
#pragma once

#include "executor/plan/plan.hpp"

namespace snnjax::executor {

// Of one run, on one partition.
struct Cost {
  double flops = 0;            // two for each multiplication of a product, one for each other arithmetic operation
  double transcendentals = 0;  // roots, powers, exponentials and the like, which flops leave out
  double bytes_accessed = 0;   // of arrays that operations read and write; views cost nothing

  Cost& operator+=(const Cost& other);
  Cost operator*(double times) const;
};

// A loop of a known number of iterations counts as often as it runs, another one once; of branches, the one with most
// bytes counts. The library's own ops depend on how many neurons fire: only their bytes count.
Cost costOf(const Plan& plan);

}  // namespace snnjax::executor
