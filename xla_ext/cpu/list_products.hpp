// Products of lists of spikes with a matrix, for one call of `spike_matmul`.
#pragma once

#include "kernels.hpp"
#include "listed_rows.hpp"
#include "numbers.hpp"
#include "parallel.hpp"
#include "products.hpp"

namespace snnjax {

// out = lists @ matrix: [rows, width] @ [width, outputs]. An entry that is not listed adds nothing.
void multiplyLists(const ListedRows& lists, const Weights& matrix, const Numbers& out, const Threads& threads);

// out[r, slot] = <matrix[id], g[r]> for every listed slot; `out` [rows, capacity] holds zeros, g is [rows, outputs].
void dotLists(const ListedRows& lists, Index capacity, const Weights& matrix, const Numbers& g, const Numbers& out,
              const Threads& threads);

}  // namespace snnjax
