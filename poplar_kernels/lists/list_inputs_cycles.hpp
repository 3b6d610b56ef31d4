// What ListInputs costs a worker: its rows, and what is not 0 in them.
#pragma once

#include "listed_rows_cycles.hpp"

namespace snnjax::cycles {

// A row: pointers 6, three entries of its header and the starts of shares, the loop over rows 3. A pair of inputs, or
// one of an odd number: load, comparison with the masks' way to an integer register 2, branch, loop. One that is not 0:
// test and branch 2, the store of its id and of its value, two counters, the masks once more.
constexpr Slots listedRow(Slots num_inputs, Slots used, unsigned id_bytes) {
  return 9 + 3 * store(id_bytes) + startsOf(used) + numbersOf(static_cast<unsigned>(num_inputs)) * 5 +
         used * (6 + store(id_bytes));
}

}  // namespace snnjax::cycles
