// What the codelets of select_spikes.cpp cost a worker: the candidates that are really there, and where there are too
// many the passes that the search for the cut really takes.
#pragma once

#include "issue_slots.hpp"
#include "lists.hpp"
#include "neuron_cycles.hpp"

namespace snnjax {

template <class Id>
class SelectCandidates;
template <class Id>
class CombineCandidates;
template <class W, class Id>
class ListValues;
template <class T, class Id>
class SelectSpikesBackward;

namespace cycles {

// Going once over the neurons of a chunk. Two neighbours of which none is a candidate: loads of the membranes and of
// both thresholds 3, the smaller threshold (beside a load), the comparison, its two lanes in one, the result into a
// main register, the branch, the loop's branch: 8. Where one is, each of both by itself: two comparisons (one beside
// the other's branch), their results into main registers 2, two branches: 6. A single neuron, where an odd number of
// columns lets no pair begin at 64 bits: the same and its loads and loop, 9. A block of columns: address and bounds 7.
constexpr Slots kPair = 8, kNearPair = 12, kNeuron = 9, kBlock = 7;
// A candidate: counted 3; written: kept or not 3, slot 2, id 1, its store and that of the membrane.
constexpr Slots kCounted = 3;
constexpr Slots written(unsigned id_bytes) { return 6 + store(id_bytes) + 1; }
// A candidate in a pass of the search: two products and five other steps of the hash, two comparisons of ranks with
// their tests 10, the count 3.
constexpr Slots kRanked = 20;
// Going over the listed of all parts: load of membrane and id, loop; a part: its address and header.
constexpr Slots kVisited = 4, kPart = 14;

// Pads by words: the first may be half of one.
constexpr Slots pads(Slots count, unsigned id_bytes) {
  return 6 + (id_bytes < 4 ? kShortStore + (count + 1) / 2 * 2 : count * 2);
}

// What one pass over the neurons of a chunk meets.
struct ChunkWalk {
  Slots pairs, near_pairs, singles, blocks;
};

constexpr Slots walkOf(ChunkWalk walk) {
  return walk.pairs * kPair + walk.near_pairs * kNearPair + walk.singles * kNeuron + walk.blocks * kBlock;
}

// One item of SelectCandidates; `ranked` candidates in all passes of the search, which goes over all neurons each time.
struct ChunkWork {
  ChunkWalk walk;
  Slots found, kept, passes, ranked;
};

constexpr Slots selectChunk(ChunkWork work, Slots pad_slots, unsigned id_bytes) {
  const Slots walks = (work.kept > 0 ? 2 : 1) + work.passes;
  constexpr Slots kItem = 2 * kDivision + 30;  // row and part of the item, the chunk, the header
  return kItem + walks * walkOf(work.walk) + work.found * kCounted + work.ranked * kRanked +
         work.kept * written(id_bytes) + pads(pad_slots, id_bytes);
}

// One share of a row of CombineCandidates: all parts are gone over to count, and once for either kind; `own` ids are
// copied.
struct CombineWork {
  Slots parts, own, pad_slots, visited, ranked;
};

constexpr Slots combineShare(CombineWork work, unsigned id_bytes) {
  constexpr Slots kShare = kDivision + 30;
  return kShare + 3 * work.parts * kPart + work.own * (2 + store(id_bytes)) + pads(work.pad_slots, id_bytes) +
         work.visited * kVisited + work.ranked * kRanked;
}

}  // namespace cycles

namespace cycles {

template <class Id>
ChunkWalk walkOver(const SelectCandidates<Id>& vertex, unsigned item) {
  const Range own = vertex.chunkOf(item);
  const unsigned neurons = own.last - own.first, columns = vertex.columns;
  const Slots blocks = columns == 2 ? 1 : (neurons + columns - 1) / columns;
  if (columns % 2 != 0) return {0, 0, neurons, blocks};
  Slots near_pairs = 0;
  unsigned last_pair = ~0U;
  vertex.forEachCandidate(item, [&](unsigned j, float, bool) {
    near_pairs += j / 2 != last_pair ? 1 : 0;
    last_pair = j / 2;
  });
  return {neurons / 2, near_pairs, neurons % 2, blocks};
}

}  // namespace cycles

template <class Id>
std::uint64_t workerCycles(const SelectCandidates<Id>& vertex, unsigned worker) {
  using namespace cycles;
  Slots slots = entry(13, true);
  for (unsigned item = worker; item < vertex.rows * vertex.parts; item += vertex.numWorkers()) {
    const auto found = vertex.count(item);
    const auto kept = found.cappedTo(smaller(vertex.slots, vertex.capacity));
    const unsigned listed = kept.spikes + kept.near;
    ChunkWork work = {walkOver(vertex, item), found.spikes + found.near, listed, 0, 0};
    if (listed > 0 && listed < found.spikes + found.near) {
      const unsigned spike_passes = vertex.cutOf(item, true, found.spikes, kept.spikes).passes;
      const unsigned near_passes = vertex.cutOf(item, false, found.near, kept.near).passes;
      work.passes = spike_passes + near_passes;
      work.ranked = Slots{spike_passes} * found.spikes + Slots{near_passes} * found.near;
    }
    slots += selectChunk(work, vertex.stride - kListHeader - listed, sizeof(Id));
  }
  return slots;
}

template <class Id>
std::uint64_t workerCycles(const CombineCandidates<Id>& vertex, unsigned worker) {
  using namespace cycles;
  Slots slots = entry(13, true);
  const RowShares sharing(vertex.rows);
  sharing.forEach(worker, [&](unsigned row, unsigned share) {
    const auto found = vertex.count(row);
    const auto kept = found.cappedTo(vertex.capacity);
    const unsigned listed = kept.spikes + kept.near;
    const Range own = shareAmong(sharing.shares, vertex.stride - kListHeader, share, kPerWord<Id>);
    CombineWork work = {vertex.num_lists, smaller(own.last, larger(listed, own.first)) - own.first, 0, 0, 0};
    work.pad_slots = own.last - own.first - work.own;
    if (kept.spikes < found.spikes) {
      const Slots passes = vertex.cutOf(row, true, found.spikes, kept.spikes).passes;
      work.visited += (passes + 1) * found.spikes;
      work.ranked += (passes + 1) * found.spikes;
    }
    if (kept.near < found.near) {
      const Slots passes = vertex.cutOf(row, false, found.near, kept.near).passes;
      work.visited += (passes + 1) * found.near;
      work.ranked += (passes + 1) * found.near;
    }
    slots += combineShare(work, sizeof(Id));
  });
  return slots;
}

// Slot by slot: comparison, choice, store, loop.
template <class W, class Id>
std::uint64_t workerCycles(const ListValues<W, Id>& vertex, unsigned worker) {
  using namespace cycles;
  const Range own = shareOf(vertex.rows, worker, vertex.capacity % kPerWord<W> == 0 ? 1 : kPerWord<W>);
  return entry(5, true) + Slots{own.last - own.first} * (10 + vertex.capacity * (3 + store(sizeof(W))));
}

// Zeros, then for each id: load, range 3, branch; of those on the tile: loads of membrane, threshold and gradient, the
// slope, masked product 4, sum with what is there 2 and its store.
template <class T, class Id>
std::uint64_t workerCycles(const SelectSpikesBackward<T, Id>& vertex, unsigned worker) {
  using namespace cycles;
  const unsigned unit = vertex.neurons % kPerWord<T> == 0 ? 1 : kPerWord<T>;
  const Range own = shareOf(vertex.rows, worker, unit);
  Slots slots = entry(11, true);
  for (unsigned i = own.first * vertex.capacity; i < own.last * vertex.capacity; ++i) {
    const bool is_here = static_cast<unsigned>(vertex.ids[i]) - vertex.first_id < vertex.neurons;
    slots += 5 + (is_here ? 9 + surrogate(vertex.surrogate) + store(sizeof(T)) : 0);
  }
  return slots + Slots{own.last - own.first} * (10 + fill(vertex.neurons, sizeof(T)));
}

}  // namespace snnjax
