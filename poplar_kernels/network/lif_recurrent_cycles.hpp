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

// A number in a step: its run, the sum with the current, the choice of the first step 2; the choice between the
// membrane and -inf 3, its store and pointer 2.
constexpr Slots kRecurrentNumber = kRun + kCountsOfRun + 1 + 2 + 5;
// A row of the weights: where it begins, whether it ends the list, its pair with the sum of the one before, the branch.
// A part of a list: the same without a pair, pointers 2, the loop.
constexpr Slots kSummedRow = 4, kSummedPart = 6;

// ListSpikes: of a pair a load, the comparison, its lanes in one and their way to a main register 2, branch, loop; of
// four pairs three loads more, with the larger ones of both in the same bundles, and the last of these.
// Where one fired, both again: load, comparison, its way, branch; a spike: its store, row 2, its store, the count.
constexpr Slots kFiredPair = 6, kFiredPairs = kFiredPair + 4, kFiredLanes = 8, kListedSpike = 5;
// A count of a list with its loop. A spike that is copied: two loads and stores, the branch.
constexpr Slots kCountOfList = 3, kCopiedSpike = 5;
// A rank: around it 10; a list: pointers, count, test and loop; of two membranes a load, two comparisons, their
// masks' ones 2, two sums of which one lies beside the branch. Ties, which are rare, are not counted.
constexpr Slots kRank = 10, kRankedList = 6, kRankedPair = 7;

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
  const unsigned runs = (own.last - own.first) / vertex.kRun, behind = own.first + runs * vertex.kRun;
  Slots slots = entry(7, false) + 10 + runs * kFiredPairs + (own.last - behind) * kFiredPair;
  for (unsigned pair = own.first; pair < behind; pair += vertex.kRun) {
    slots += vertex.fired(pair, vertex.kRun) ? vertex.kRun * kFiredPair : 0;
  }
  for (unsigned pair = own.first; pair < own.last; ++pair) {
    const unsigned fired = (vertex.sent[2 * pair] > kNotSent ? 1 : 0) + (vertex.sent[2 * pair + 1] > kNotSent ? 1 : 0);
    slots += fired > 0 ? kFiredLanes + fired * kListedSpike : 0;
  }
  return slots;
}

std::uint64_t workerCycles(const std::same_as<JoinSpikes> auto& vertex, unsigned worker) {
  using namespace cycles;
  const SpikeLists lists = vertex.lists();
  const Slots each = lists.countBefore(lists.lists) <= vertex.capacity ? kCopiedSpike : kCopiedSpike + rank(lists);
  return entry(7, false) + lists.lists * kCountOfList + 8 + lists.count(worker) * each;
}

std::uint64_t workerCycles(const std::same_as<RankSpikes> auto& vertex, unsigned worker) {
  using namespace cycles;
  const SpikeLists lists = vertex.lists();
  const Range own = quickShareOf(lists.count(vertex.own), worker);
  const Slots each = lists.countBefore(lists.lists) <= vertex.limit ? kCopiedSpike : kCopiedSpike + rank(lists);
  return entry(8, false) + lists.lists * kCountOfList + 8 + (own.last - own.first) * each;
}

}  // namespace snnjax
