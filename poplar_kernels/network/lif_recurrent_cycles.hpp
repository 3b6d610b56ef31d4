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

// A number in a step: its run, the sum with the current, the choice of the first step 2; what is sent: two comparisons,
// three masks 5, its store and pointer 2.
constexpr Slots kRecurrentNumber = kRun + kCountsOfRun + 1 + 2 + 7;
// A row of the weights: where it begins, its pair with the sum of the one before, the branch. A part of a list: its
// count and the test 2, the last sum, pointer, loop.
constexpr Slots kSummedRow = 3, kSummedPart = 5;

// ListSpikes: of a pair a load, its lanes in one and their way to a main register 2, branch, loop; of four pairs three
// loads more, with the masks before in the same bundles, and the last mask. Where one fired: two loads and branches for
// a pair, the loop. A spike: its store, row 2, its store, the count, the end of a pair 3.
constexpr Slots kFiredPair = 5, kFiredPairs = kFiredPair + 4, kOfferedPair = 5, kListedSpike = 8;
// A count of a list: load, sum, maximum, the loop. A spike that is copied: two loads and stores, the branch. A list
// dealt out: count, test 2, difference, pointer, loop; a spike of it: two loads and stores, comparison 2, the next one.
constexpr Slots kCountOfList = 4, kCopiedSpike = 5, kDealtList = 6, kDealtSpike = 7;
// A rank: around it 12; a pair of membranes: a load, two comparisons, their masks' ones 2, two sums of which one lies
// beside the branch. Where a list is longer than a pair: pointer, count, test and loop of each. Ties, which are rare,
// are not counted.
constexpr Slots kRank = 12, kRankedPair = 7, kRankedList = 5;

inline Slots rank(const SpikeLists& lists) {
  Slots slots = kRank + lists.lists * kRankedPair;
  if (lists.counts(0).most <= 2) return slots;
  for (unsigned list = 0; list < lists.lists; ++list) {
    slots += kRankedList + (larger(lists.count(list), 2) - 1) / 2 * kRankedPair;
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
  const unsigned runs = (own.last - own.first) / vertex.kRun, behind = own.first + runs * vertex.kRun;
  Slots slots = entry(7, false) + 12 + runs * kFiredPairs + (own.last - behind) * kFiredPair;
  for (unsigned pair = own.first; pair < own.last; pair += pair < behind ? vertex.kRun : 1) {
    const unsigned count = pair < behind ? vertex.kRun : 1;
    if (!vertex.fired(pair, count)) continue;
    slots += count * kOfferedPair;
    for (unsigned i = 2 * pair; i < 2 * (pair + count); ++i) slots += isSent(vertex.sent[i]) ? kListedSpike : 0;
  }
  return slots;
}

std::uint64_t workerCycles(const std::same_as<JoinSpikes> auto& vertex, unsigned worker) {
  using namespace cycles;
  const SpikeLists lists = vertex.lists();
  const Slots slots = entry(7, false) + lists.lists * kCountOfList + 14;
  if (lists.counts(0).all <= vertex.limit) return slots + lists.count(worker) * kCopiedSpike;
  Slots dealt = lists.lists * kDealtList;
  lists.forEachOwn(worker, [&](unsigned, unsigned) { dealt += kDealtSpike + rank(lists); });
  return slots + dealt;
}

std::uint64_t workerCycles(const std::same_as<RankSpikes> auto& vertex, unsigned worker) {
  using namespace cycles;
  const SpikeLists lists = vertex.lists();
  const Range own = quickShareOf(lists.count(vertex.own), worker);
  const Slots each = lists.counts(0).all <= vertex.limit ? kCopiedSpike : kCopiedSpike + rank(lists);
  return entry(9, false) + lists.lists * kCountOfList + 8 + (own.last - own.first) * each;
}

}  // namespace snnjax
