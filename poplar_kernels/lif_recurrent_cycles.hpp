// What the codelets of lif_recurrent.cpp cost a worker: its numbers with the spikes that are really listed.
#pragma once

#include <concepts>

#include "lif_scan_cycles.hpp"

namespace snnjax {

template <class W, bool has_second>
class LifRecurrentStep;
class PackSpikes;
class ListSpikes;

namespace cycles {

// A number in a step: its row's pointers and the current as in a scan, the sum with the current, the choice of the
// first step 2; two lanes become bits: moves 2, tests 2, shift and or 2, store; with membranes besides: a load, a store
// and its pointer.
constexpr Slots kRecurrentNumber = kScanNumber + kScanStep + 1 + 2 + 7;
constexpr Slots kSentMembranes = 3;

// PackSpikes: a word's loop 6, a pair's load, shift, or and branch.
constexpr Slots kPackedWord = 6, kPackedPair = 4;
// ListSpikes: load of a word, its test, the loop. A spike: lowest bit 2, its clearing 2, the id 3, its store, a branch;
// with membranes besides their address 2, a load and a store.
constexpr Slots kMask = 4, kListedSpike = 2 + 2 + 3 + kShortStore + 1, kListedMembrane = 4;

}  // namespace cycles

template <class W, bool has_second>
std::uint64_t workerCycles(const LifRecurrentStep<W, has_second>& vertex, unsigned worker) {
  using namespace cycles;
  const unsigned t = *vertex.iteration;
  if (t >= vertex.num_steps) return kIdle;
  Slots inside = advance(vertex.reset);
  if constexpr (has_second) inside += advanceSecond(vertex.raises);
  const Slots sent = kRecurrentNumber + (vertex.sends_membranes ? kSentMembranes : 0);
  return entry(has_second ? 28 : 23, false) + ownNumbers(vertex, worker, [&](unsigned b) -> Slots {
           if (t >= vertex.lengths[b]) return sent + kFrozenStep + (has_second ? kFreezeSecond : 0);
           const List<unsigned short> list = {&vertex.lists[b * vertex.stride], vertex.capacity};
           const Slots spikes = t == 0 ? 0 : list.spikes();
           return sent + inside + kRecordHeader + spikes * sumOfId(1, vertex.neurons == 2, sizeof(W), false);
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
  const Range own = shareOf(vertex.blocks, worker);
  const Slots found = vertex.lists[worker * vertex.stride];
  return entry(9, true) + (own.last - own.first) * vertex.masks * kMask + 8 +
         found * (kListedSpike + (vertex.sends_membranes ? kListedMembrane : 0));
}

}  // namespace snnjax
