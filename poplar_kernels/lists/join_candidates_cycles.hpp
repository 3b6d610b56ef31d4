// What the codelets of join_candidates.cpp cost a worker: the candidates of a row, and where there are too many, the
// passes that the search for the last of them takes.
#pragma once

#include "../conventions.hpp"
#include "../issue_slots.hpp"

namespace snnjax::cycles {

// One at the bound of a cut: two products and five other steps of the hash, its comparison with the branch, the
// count 3.
constexpr Slots kHashed = 12;
// A part: pointers moved on 2, two loads of its counts with their bounds 4, their difference, the test, the loop 2.
// A candidate of it that is gathered: load, store, branch; its extremes: the same. One that is compared alone: load,
// comparison, its result, branch, loop.
constexpr Slots kPart = 10, kGathered = 3, kCompared = 5;
// Four neighbours that are compared with a bound: two loads, the branch; two comparisons, masks and sums, of which
// three find a bundle. Around such a pass: the next bound 6, the tests of what it gave 6, a pair that is left over 4,
// sums 2.
constexpr Slots kFourAbove = 7, kPass = 18;
// The next one beyond a bound: of four neighbours two loads, the branch; two comparisons, choices of three instructions
// and minima, of which two find a bundle. Around it: the bound 4, both lanes 5, pointers and the loop 4.
constexpr Slots kFourBeyond = 11, kWalk = 13;
// Of both kinds: what stays 5; own part, tests, the count and its store 10. The first worker: both cuts 4, their
// addresses 4, spikes and dropped ones 5, whether these add to others.
constexpr Slots kKinds = 5 + 2 * 10, kCuts = 14;
// The search for the cut of `candidates`. Gathered ones are stored first, and the search then does not touch the parts.
struct ListSearch {
  Slots candidates, counts, walks, tie_passes, ties;
  bool gathered;
};

constexpr Slots searchLists(ListSearch search) {
  const Slots parts = kShares * kPart, count = search.candidates / 4 * kFourAbove;
  const Slots walk =
      kWalk + (search.gathered ? search.candidates / 4 * kFourBeyond : parts + search.candidates * kCompared);
  const Slots tie_pass = kPass + parts + search.candidates * kCompared + search.ties * kHashed;
  return parts + search.candidates * kGathered + search.counts * (kPass + (search.gathered ? 0 : parts) + count) +
         search.walks * walk + search.tie_passes * tie_pass;
}

// JoinCandidates. A run: its count, the sum, pointer and loop; four sums 2 each. One that is copied: its part, cut and
// bounds 16, the one after it 8. A candidate of it: load of its membrane, comparison, its result, branch; whether
// it is the last 2; id 1; of two in a word the slot's test, both in one, store and loop 6. Pads: a word its store and
// branch.
constexpr Slots kRunOfList = 4, kSums = 8, kCopiedRun = 24, kOfRun = 10, kPads = 14;

constexpr Slots joinRow(Slots own, Slots pads) {
  return 2 * kShares * kRunOfList + kSums + 2 * kCopiedRun + own * kOfRun + kPads + pads * 2;
}
// The first worker's header: its address 4, the number of spikes, of a start the count and the sum; two entries of 16
// bits are put into a word, 2, and stored.
constexpr Slots header(unsigned id_bytes) {
  return 5 + (kShares - 1) * 2 + (id_bytes < 4 ? kListHeader / 2 * 3 : kListHeader);
}

}  // namespace snnjax::cycles
