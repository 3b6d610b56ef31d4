// What the codelets of select_spikes.cpp cost a worker.
#pragma once

#include "../issue_slots.hpp"
#include "candidates_cycles.hpp"

namespace snnjax::cycles {

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

}  // namespace snnjax::cycles
