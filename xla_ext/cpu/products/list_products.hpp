// Products of lists of spikes with a matrix, as one call of `spike_matmul` needs them: dense or sparse, from a copy of
// the matrix or in place, whichever is fastest for the number of entries.
#pragma once

#include "cpu/lists/listed_rows.hpp"
#include "cpu/numbers.hpp"
#include "cpu/parallel.hpp"
#include "products.hpp"

namespace snnjax {

// A dense product needs lists and a matrix of this many rows to be fast.
inline constexpr Index kLeastDenseRows = 8;

// out = lists @ matrix, [rows, width] @ [width, outputs]. What is not listed adds nothing, whatever the matrix holds.
void multiplyLists(const ListedRows& lists, const Weights& matrix, const WritableNumbers& out, const Threads& threads);

// out[r, slot] = <matrix[id], g[r]> for all listed slots of `capacity` and 0 for all others; g is [rows, outputs].
void dotLists(const ListedRows& lists, Index capacity, const Weights& matrix, const Numbers& g,
              const WritableNumbers& out, const Threads& threads);

}  // namespace snnjax
