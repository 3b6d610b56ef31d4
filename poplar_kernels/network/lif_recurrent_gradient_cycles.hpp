// What the codelets of lif_recurrent_gradient.cpp cost a worker: its numbers with the ids that are really listed.
#pragma once

#include "../lists/listed_rows_cycles.hpp"
#include "../lists/lists.hpp"
#include "lif_gradient_scan_cycles.hpp"
#include "neuron_rows.hpp"

namespace snnjax::cycles {

// SlotsOfNeurons: a row's pointers, its record, two neurons a store; an entry's load, difference, test and branch, and
// one that is own.
constexpr Slots kSlotsRow = 12 + kRecordHeader, kSlotsEntry = 4, kOwnEntry = 2 + kShortStore;
// A neuron in a list: the address of its first sum 4, a load with the sum of the one before and the branch for each
// part. Before: two loads of slots, their tests 2, both sums into one register 2.
constexpr Slots kSlotsTests = 6, kListedNeuron = 4, kListedPart = 2;
// Plain neurons: the rows of three tables 7, the test of the length 2, two slots with their tests 4, of counts two
// words and their test 4, the reset's 2; five loads, four stores, three sums or products that find no bundle. A reset
// that does not pass on the gradient as it is: two loads and their row, and the reset. With a gradient at the spike the
// row, three loads, two sums, the surrogate's difference, comparison, mask and product 4, both sums of slots into one
// register 2; with that of counts two loads, two masks, two products or sums. Past the end: row, test, store.
constexpr Slots kPlainRecurrent = 7 + 2 + 4 + 4 + 2 + 5 + 4 + 3, kPlainFrozen = 6;
constexpr Slots plainReset(GradientSwitches s) {
  return s.detach_reset && s.reset != Zero ? 0 : 3 + throughReset(s.reset, s.detach_reset, s.surrogate);
}
constexpr Slots activeRecurrent(unsigned char surrogate_kind, bool counted) {
  return 2 + 3 + 2 + surrogate(surrogate_kind) + 4 + 2 + (counted ? 6 : 0);
}

}  // namespace snnjax::cycles
