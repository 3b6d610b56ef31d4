// What the codelet of readout_rows.cpp costs a worker: the neurons that are really listed.
#pragma once

#include "../issue_slots.hpp"
#include "../lists/masks.hpp"

namespace snnjax::cycles {

// forEachMark: its number, the bit cleared 2, the branch; addresses of what it names 5.
constexpr Slots kMark = 4 + 5;

// The dot product, through the parts of a row: two pointers and the branch for each; its pairs: loads, and a branch
// where there are several; the last product, both lanes, the store. Where the neuron is kept besides, of a pair the
// load and store of its sum, and a pointer unless sums lie as far apart as weights. Products and sums find bundles,
// halves are widened beside their products.
constexpr Slots readoutDot(Slots parts, unsigned columns, unsigned width, bool is_kept) {
  const Slots pairs = numbersOf(columns), of_pair = (width < 4 ? 3 : 2) + (is_kept ? 2 : 0) + (pairs > 1 ? 1 : 0);
  return parts * (3 + (is_kept && width < 4 ? 1 : 0) + pairs * of_pair) + 4;
}

// Sums cleared by four pairs a turn, then number by number: where they are 6.
constexpr Slots clearedSums(Slots rows, unsigned columns) {
  const Slots numbers = rows * columns, in_turns = columns % 2 == 0 ? numbers / 8 * 8 : 0;
  return 6 + in_turns / 8 * 5 + (numbers - in_turns) * 2;
}

}  // namespace snnjax::cycles
