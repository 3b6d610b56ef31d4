// What the codelets of lif_recurrent.cpp cost a worker: its numbers with the spikes that are really listed.
#pragma once

#include <concepts>

#include "lif_scan_cycles.hpp"
#include "listed_rows_cycles.hpp"
#include "lists.hpp"

namespace snnjax {

template <class W, bool has_second>
class LifRecurrentStep;
class PackSpikes;
class ListSpikes;
class JoinSpikes;

namespace cycles {

// A number in a step: its row's pointers and the current as in a scan, the sum with the current, the choice of the
// first step 2; two lanes become bits: moves 2, tests 2, shift and or 2, store; with membranes besides: a load, a store
// and its pointer.
constexpr Slots kRecurrentNumber = kScanNumber + kScanStep + 1 + 2 + 7;
constexpr Slots kSentMembranes = 3;
// A row of the weights: where it begins, its pair with the sum of the one before, the branch.
constexpr Slots kSummedRow = 3;

// PackSpikes: a word's loop 6, a pair's load, shift, or and branch.
constexpr Slots kPackedWord = 6, kPackedPair = 4;
// ListSpikes: load of a word, its test, the loop. A spike: lowest bit 2, its clearing 2, the id 3, its store, a branch;
// with membranes besides their address 2, a load and a store.
constexpr Slots kMask = 4, kListedSpike = 2 + 2 + 3 + 1 + 1, kListedMembrane = 4;
// JoinSpikes: a part's count, its loop; a copied spike.
constexpr Slots kPart = 4, kCopiedSpike = 3;
// Of more than fit, a membrane on the stack. Ranks: the parts of the own ones; of two membranes a load, two
// comparisons, two sums that no bundle takes, the branch; around them 10. Ties, which are rare, are not counted.
constexpr Slots kGathered = 3, kRankedPart = 4, kRankedPair = 5, kRank = 10;
// A cut: the loop of a count over two membranes, what is around it; the extremes; a membrane compared with the cut, a
// kept one's slot.
constexpr Slots kCountedPair = 3, kCount = 14, kExtremes = 4, kCompared = 5, kKeptSpike = 3;

}  // namespace cycles

template <class W, bool has_second>
std::uint64_t workerCycles(const LifRecurrentStep<W, has_second>& vertex, unsigned worker) {
  using namespace cycles;
  if (*vertex.iteration >= vertex.num_steps) return kIdle;
  const unsigned t = *vertex.block * vertex.num_steps + *vertex.iteration;
  Slots inside = advance(vertex.reset);
  if constexpr (has_second) inside += advanceSecond(vertex.raises);
  const Slots sent = kRecurrentNumber + (vertex.sends_membranes ? kSentMembranes : 0);
  return entry(has_second ? 29 : 24, false) + ownNumbers(vertex, worker, [&](unsigned b) -> Slots {
           if (t >= vertex.lengths[b]) return sent + kFrozenStep + (has_second ? kFreezeSecond : 0);
           return sent + inside + kRecordHeader + (t == 0 ? 0 : vertex.lists[b * vertex.stride]) * kSummedRow;
         });
}

std::uint64_t workerCycles(const std::same_as<PackSpikes> auto& vertex, unsigned worker) {
  using namespace cycles;
  Slots slots = entry(6, false);
  for (unsigned i = worker; i < vertex.batch * vertex.masks; i += vertex.numWorkers()) {
    const unsigned first = i % vertex.masks * 16;
    slots += kPackedWord + (smaller(first + 16, vertex.pairs) - first) * kPackedPair;
  }
  return slots;
}

std::uint64_t workerCycles(const std::same_as<ListSpikes> auto& vertex, unsigned worker) {
  using namespace cycles;
  const Range own = quickShareOf(vertex.blocks, worker);
  const Slots found = vertex.parts[worker * (1 + vertex.slots)];
  return entry(8, false) + 8 + (own.last - own.first) * vertex.masks * kMask +
         found * (kListedSpike + (vertex.sends_membranes ? kListedMembrane : 0));
}

std::uint64_t workerCycles(const std::same_as<JoinSpikes> auto& vertex, unsigned worker) {
  using namespace cycles;
  const unsigned workers = vertex.numWorkers(), total = vertex.countBefore(workers);
  const Slots slots = entry(6, false) + workers * kPart + 8;
  if (total <= vertex.capacity) return slots + vertex.countOf(worker) * kCopiedSpike;
  if (total <= vertex.kMostRanked) {
    const Range own = quickShareOf(total, worker);
    const Slots each = kRank + (total + 1) / 2 * kRankedPair;
    return slots + total * kGathered + workers * kRankedPart + (own.last - own.first) * each;
  }
  const auto cut = vertex.findCut(total);
  const bool is_gathered = total <= vertex.kMostGathered;
  const Slots pass = (total + 1) / 2 * kCountedPair + kCount * (is_gathered ? 1 : workers);
  const Slots ties = cut.tie_passes * (total * kCompared + cut.ties * (kDivision + 12));
  return slots + (is_gathered ? total * kGathered : 0) + total * kExtremes + cut.counts * pass + ties +
         vertex.countBefore(worker + 1) * kCompared + vertex.countOf(worker) * kKeptSpike;
}

}  // namespace snnjax
