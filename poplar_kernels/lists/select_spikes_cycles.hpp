// What the codelets of select_spikes.cpp cost a worker.
#pragma once

#include "../issue_slots.hpp"
#include "../surrogates_cycles.hpp"
#include "candidates_cycles.hpp"
#include "lists.hpp"

namespace snnjax {

template <class Id>
class SelectCandidates;
template <class W, class Id>
class ListValues;
template <class T, class Id>
class SelectSpikesBackward;

namespace cycles {

// Two neighbours of which none is a candidate: loads of the membranes and of the least thresholds 2, the comparison,
// its two lanes in one, the result into a main register, the branch, the loop's branch: 7. Where one is, each of both
// by itself: loads of its membrane and threshold 2, the comparison, its result into a main register, the branch: 5. A
// single neuron, where an odd number of neurons lets no pair begin at 64 bits: the same and its loop, 6. A candidate
// besides: its threshold, the comparison, its result into a main register, the branch.
constexpr Slots kPair = 7, kNearPair = 10, kNeuron = 6, kWhichKind = 4;

// What one pass over a worker's neurons finds.
struct Walk {
  Slots pairs, near_pairs, singles;
};

constexpr Slots walkOf(Walk walk) { return walk.pairs * kPair + walk.near_pairs * kNearPair + walk.singles * kNeuron; }

}  // namespace cycles

template <class Id>
std::uint64_t workerCycles(const SelectCandidates<Id>& vertex, unsigned worker) {
  using namespace cycles;
  const Range own = neuronsOfWorker(vertex.neurons, worker);
  const unsigned neurons = own.last - own.first;
  Slots slots = entry(7, false);
  for (unsigned row = 0; row < vertex.rows; ++row) {
    Slots found = 0, near_pairs = 0;
    unsigned last_pair = ~0U;
    vertex.forEachCandidate(row, worker, [&](unsigned j, float, bool) {
      ++found;
      near_pairs += j / 2 != last_pair ? 1 : 0;
      last_pair = j / 2;
    });
    const Walk in_pairs = {neurons / 2, near_pairs, neurons % 2}, single = {0, 0, neurons};
    slots += partOf(found, sizeof(Id)) + found * kWhichKind + walkOf(vertex.neurons % 2 == 0 ? in_pairs : single);
  }
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
