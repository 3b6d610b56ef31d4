// What SumRows (sum_rows.cpp) costs a worker.
#pragma once

#include <concepts>

#include "issue_slots.hpp"
#include "workers.hpp"

namespace snnjax {

class SumRows;

namespace cycles {

// A column, or a pair of neighbours: pointer, zero, the count's test, the store, the loop: 6; each row a load that
// moves on by the row's length, with the sum of the row before in the branch's bundle: 2.
constexpr Slots sumRows(Slots rows, Slots columns, bool in_pairs) {
  return (in_pairs ? columns / 2 : columns) * (6 + rows * 2);
}

}  // namespace cycles

std::uint64_t workerCycles(const std::same_as<SumRows> auto& vertex, unsigned worker) {
  unsigned own = 0;
  for (unsigned j = 2 * worker; j < vertex.columns; j += 2 * vertex.numWorkers()) {
    own += smaller(2, vertex.columns - j);
  }
  return cycles::entry(4, false) + cycles::sumRows(vertex.rows, own, vertex.columns % 2 == 0);
}

}  // namespace snnjax
