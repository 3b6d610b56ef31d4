// Products of lists of spikes with a matrix, as one call of `spike_matmul` needs them: dense or sparse, from a copy of
// the matrix or where it lies, whichever is the fastest for the counted entries.
#pragma once

#include "kernels.hpp"
#include "listed_rows.hpp"
#include "numbers.hpp"
#include "parallel.hpp"
#include "products.hpp"

namespace snnjax {

// out = lists @ matrix, [rows, width] @ [width, outputs]. What is not listed adds nothing, whatever the matrix holds.
void multiplyLists(const ListedRows& lists, const Weights& matrix, const Numbers& out, const Threads& threads);

// out[r, slot] = <matrix[id], g[r]> for all listed slots of `capacity` and 0 for all others; g is [rows, outputs].
void dotLists(const ListedRows& lists, Index capacity, const Weights& matrix, const Numbers& g, const Numbers& out,
              const Threads& threads);

// The threads for so many products of two numbers: few take less time than waking another thread.
inline Threads threadsFor(Index products, const Threads& threads) {
  constexpr Index kWorthWaking = 400'000;
  return products < kWorthWaking ? Threads({}, 1) : threads;
}

}  // namespace snnjax
