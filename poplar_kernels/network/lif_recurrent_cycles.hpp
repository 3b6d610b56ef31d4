// What the codelets of lif_recurrent.cpp cost a worker: its numbers with the spikes that are really listed.
#pragma once

#include "../lists/listed_rows_cycles.hpp"
#include "../lists/spike_lists.hpp"
#include "lif_scan_cycles.hpp"
#include "neuron_rows.hpp"

namespace snnjax::cycles {

// A number in a step: its run, the sum with the current, the choice of the first step 2; what is sent: two comparisons
// and three masks 5, its store and pointer 2.
constexpr Slots kRecurrentNumber = kRun + kCountsOfRun + 1 + 2 + 7;
// A row of the weights: where it begins, its pair with the sum of the one before, the branch unless it ends the list. A
// part of a list: the same without a pair, pointers 2, the loop.
constexpr Slots kSummedRow = 3, kSummedPart = 5;

// ListSpikes: of two pairs two loads, of which the second one takes no mask along, their lanes in one and on the way to
// a main register 3, branch, loop; of one left over a load and a mask fewer. Where one fired: two loads and branches
// for each pair, the loop. A spike: its store, row 2, its store, the count.
constexpr Slots kFiredPairs = 7, kFiredPair = 5, kOfferedPair = 5, kListedSpike = 5;
// A count of a list with its loop. A spike that is copied: two loads and stores, the branch.
constexpr Slots kCountOfList = 3, kCopiedSpike = 5;
// A part that is merged: its pointer 2, its count, its end 2, the loop; a row of it: load, store and branch, of ranked
// ones two tests.
constexpr Slots kMergedPart = 6, kMergedRow = 3, kTestsOfRanked = 2;
// A rank: around it 10, and that in its own list from lanes to a number 4; a list: pointers, count, test and loop; of
// two membranes a load, two comparisons, their masks' ones 2, two sums of which one lies beside the branch. Ties, which
// are rare, are not counted.
constexpr Slots kRank = 14, kRankedList = 6, kRankedPair = 7;

inline Slots rank(const SpikeLists& lists) {
  Slots slots = kRank;
  for (unsigned list = 0; list < lists.lists; ++list) {
    slots += kRankedList + (lists.count(list) + 1) / 2 * kRankedPair;
  }
  return slots;
}

}  // namespace snnjax::cycles
