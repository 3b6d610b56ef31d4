// What the codelets of lif_recurrent.cpp cost a worker: its numbers with the spikes that are really listed.
#pragma once

#include <concepts>

#include "../lists/listed_rows_cycles.hpp"
#include "../lists/spike_lists.hpp"
#include "lif_scan_cycles.hpp"
#include "neuron_rows.hpp"

namespace snnjax {

template <class W, bool has_second>
class LifRecurrentStep;
class ListSpikes;
class JoinSpikes;
class RankSpikes;

namespace cycles {

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

}  // namespace cycles

template <class W, bool has_second>
std::uint64_t workerCycles(const LifRecurrentStep<W, has_second>& vertex, unsigned worker) {
  using namespace cycles;
  if (*vertex.iteration >= vertex.num_steps) return kIdle;
  const unsigned t = *vertex.block * vertex.num_steps + *vertex.iteration;
  Slots number = kRecurrentNumber, inside = kAdvanceOnce;
  if constexpr (has_second) {
    number += kRunSecond;
    inside += advanceSecond(vertex.raises);
  }
  return entry(has_second ? 30 : 26, false) + ownNumbers(vertex, worker, [&](unsigned b) -> Slots {
           if (t >= vertex.lengths[b]) return number + kFrozenStep + (has_second ? kFreezeSecond : 0);
           return number + inside + (t == 0 ? 0 : vertex.parts * kSummedPart + vertex.listed(b) * kSummedRow);
         });
}

std::uint64_t workerCycles(const std::same_as<ListSpikes> auto& vertex, unsigned worker) {
  using namespace cycles;
  const Range own = quickShareOf(vertex.pairs, worker);
  Slots slots = entry(7, false) + 10;
  for (unsigned pair = own.first; pair < own.last; pair += 2) {
    const unsigned count = smaller(own.last - pair, 2);
    slots += count == 2 ? kFiredPairs : kFiredPair;
    if (!vertex.fired(pair, count)) continue;
    slots += count * kOfferedPair;
    for (unsigned i = 2 * pair; i < 2 * (pair + count); ++i) slots += isSent(vertex.sent[i]) ? kListedSpike : 0;
  }
  return slots;
}

std::uint64_t workerCycles(const std::same_as<JoinSpikes> auto& vertex, unsigned worker) {
  using namespace cycles;
  const SpikeLists lists = vertex.lists();
  const Slots each = lists.countOf(0, lists.lists) <= vertex.capacity ? kCopiedSpike : kCopiedSpike + rank(lists);
  return entry(7, false) + lists.lists * kCountOfList + 8 + lists.count(worker) * each;
}

std::uint64_t workerCycles(const std::same_as<RankSpikes> auto& vertex, unsigned worker) {
  using namespace cycles;
  const SpikeLists lists = vertex.lists();
  const Range own = quickShareOf(lists.count(vertex.own), worker);
  const Slots each = lists.countOf(0, lists.lists) <= vertex.limit ? kCopiedSpike : kCopiedSpike + rank(lists);
  return entry(8, false) + lists.lists * kCountOfList + 8 + (own.last - own.first) * each;
}

}  // namespace snnjax
