// What the codelets of select_spikes.cpp cost a worker: the candidates found, and where there are too many, the passes
// that the search for the cut takes.
#pragma once

#include "../issue_slots.hpp"
#include "../surrogates_cycles.hpp"
#include "lists.hpp"

namespace snnjax {

template <class Id, bool raised>
class SelectCandidates;
template <class Id>
class CombineCandidates;
template <class W, class Id>
class ListValues;
template <class T, class Id>
class SelectSpikesBackward;

namespace cycles {

// Going once over the neurons of a chunk. Two neighbours of which none is a candidate: loads of the membranes and of
// the least thresholds 2, the comparison, its two lanes in one, the result into a main register, the branch, the
// loop's branch: 7. Where one is, each of both by itself: loads of its membrane and threshold 2, the comparison, its
// result into a main register, the branch: 5. A single neuron, where an odd number of columns lets no pair begin at 64
// bits: the same and its loop, 6. A block of columns: address and bounds 7.
constexpr Slots kPair = 7, kNearPair = 10, kNeuron = 6, kBlock = 7;
// What raises the least threshold of a pair, or of a neuron: its load and a sum; where a pair is tested by itself, the
// same for each of both; of a candidate, the sum with its threshold.
constexpr Slots kRaised = 2, kRaisedNearPair = 4, kRaisedCandidate = 1;
// A candidate: its threshold, the comparison, its result into a main register, the branch; its count, id, its store,
// that of the membrane and the slot 2.
constexpr Slots written(unsigned id_bytes) { return 4 + 4 + store(id_bytes); }
// One at the bound of a cut: two products and five other steps of the hash, its comparison with the branch, the
// count 3.
constexpr Slots kHashed = 12;
// A part: pointers moved on 2, two loads of its counts with their bounds 4, their difference, the test, the loop 2.
// A candidate of it that is gathered: load, store with the smaller one, branch with the larger one; of those of many
// parts the extremes: the same. One in the last pass: load, comparison, its result, branch, loop; where it is kept, its
// slot and the test whose it is.
constexpr Slots kPart = 10, kGathered = 3, kLast = 5, kKeptCandidate = 3;
// A pass that only counts what lies above a bound takes two neighbours at a time: a load, comparison, mask and sum, one
// of them beside the load and one beside the branch: 4. Around a pass: the next bound 6, the tests of what it gave 6.
constexpr Slots kPairAbove = 4, kPass = 12;

// Pads by words: the first may be half of one.
constexpr Slots pads(Slots count, unsigned id_bytes) {
  return 6 + (id_bytes < 4 ? kShortStore + (count + 1) / 2 * 2 : count * 2);
}

// What one pass over the neurons of a chunk finds.
struct ChunkWalk {
  Slots pairs, near_pairs, singles, blocks;
  bool raised = false;  // thresholds of each row and neuron
};

constexpr Slots walkOf(ChunkWalk walk) {
  const Slots raised = walk.raised ? (walk.pairs + walk.singles) * kRaised + walk.near_pairs * kRaisedNearPair : 0;
  return walk.pairs * kPair + walk.near_pairs * kNearPair + walk.singles * kNeuron + walk.blocks * kBlock + raised;
}

// A row of a worker of SelectCandidates: pointers, counts.
constexpr Slots selectRow(ChunkWalk walk, Slots found, unsigned id_bytes) {
  const Slots each = written(id_bytes) + (walk.raised ? kRaisedCandidate : 0);
  return 16 + 2 * store(id_bytes) + walkOf(walk) + found * each;
}

// The search for the cut of `candidates`. Gathered ones are stored first, and the search then does not touch the parts.
struct ListSearch {
  Slots candidates, kept, counts, tie_passes, ties;
  bool gathered;
};

constexpr Slots searchLists(ListSearch search) {
  const Slots parts = kShares * kPart, count = (search.candidates + 1) / 2 * kPairAbove;
  const Slots tie_pass = kPass + parts + search.candidates * kLast + search.ties * kHashed;
  return parts + search.candidates * kGathered + search.counts * (kPass + (search.gathered ? 0 : parts) + count) +
         search.tie_passes * tie_pass + search.candidates * kLast + search.kept * kKeptCandidate;
}

// One share of a row of CombineCandidates: all parts are gone over to count, and once for either kind; `own` ids are
// copied; `searches` where there are too many.
struct CombineWork {
  Slots own, pad_slots, searches;
};

constexpr Slots combineShare(CombineWork work, unsigned id_bytes) {
  constexpr Slots kShare = kDivision + 30;
  return kShare + kShares * (3 * kPart + store(id_bytes)) + work.own * (2 + store(id_bytes)) +
         pads(work.pad_slots, id_bytes) + work.searches;
}

}  // namespace cycles

template <class Id, bool raised>
std::uint64_t workerCycles(const SelectCandidates<Id, raised>& vertex, unsigned worker) {
  using namespace cycles;
  const Range own = neuronsOfWorker(vertex.neurons, worker);
  const unsigned neurons = own.last - own.first, columns = vertex.columns;
  const Slots blocks = columns == 2 ? 1 : (neurons + columns - 1) / columns;
  Slots slots = entry(raised ? 9 : 8, false);
  for (unsigned row = 0; row < vertex.rows; ++row) {
    Slots found = 0, near_pairs = 0;
    unsigned last_pair = ~0U;
    vertex.forEachCandidate(row, worker, [&](unsigned j, float, bool) {
      ++found;
      near_pairs += j / 2 != last_pair ? 1 : 0;
      last_pair = j / 2;
    });
    const ChunkWalk in_pairs = {neurons / 2, near_pairs, neurons % 2, blocks, raised},
                    single = {0, 0, neurons, blocks, raised};
    slots += selectRow(columns % 2 == 0 ? in_pairs : single, found, sizeof(Id));
  }
  return slots;
}

template <class Id>
std::uint64_t workerCycles(const CombineCandidates<Id>& vertex, unsigned worker) {
  using namespace cycles;
  Slots slots = entry(8, true);
  const RowShares sharing(vertex.rows);
  sharing.forEach(worker, [&](unsigned row, unsigned share) {
    const auto found = vertex.count(row);
    const auto kept = found.cappedTo(vertex.capacity);
    const unsigned listed = kept.spikes + kept.near;
    const Range own = shareAmong(sharing.shares, vertex.stride - kListHeader, share, kPerWord<Id>);
    CombineWork work = {smaller(own.last, larger(listed, own.first)) - own.first, 0, 0};
    work.pad_slots = own.last - own.first - work.own;
    const auto add = [&](bool spikes, unsigned all, unsigned stay) {
      if (stay == 0 || stay == all) return;
      const auto cut = vertex.cutOf(row, spikes, all, stay);
      work.searches += searchLists({all, stay, cut.counts, cut.tie_passes, cut.ties, all <= vertex.kMostGathered});
    };
    add(true, found.spikes, kept.spikes);
    add(false, found.near, kept.near);
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

// Zeros, then for each id: load, range 3, branch; of those in range: loads of membrane, threshold and gradient, the
// slope, masked product 4, sum with what is there 2 and its store.
template <class T, class Id>
std::uint64_t workerCycles(const SelectSpikesBackward<T, Id>& vertex, unsigned worker) {
  using namespace cycles;
  const unsigned unit = vertex.neurons % kPerWord<T> == 0 ? 1 : kPerWord<T>;
  const Range own = shareOf(vertex.rows, worker, unit);
  Slots slots = entry(11, true);
  for (unsigned i = own.first * vertex.capacity; i < own.last * vertex.capacity; ++i) {
    const bool is_listed = static_cast<unsigned>(vertex.ids[i]) < vertex.neurons;
    slots += 5 + (is_listed ? 9 + surrogate(vertex.surrogate) + store(sizeof(T)) : 0);
  }
  return slots + Slots{own.last - own.first} * (10 + fill(vertex.neurons, sizeof(T)));
}

}  // namespace snnjax
