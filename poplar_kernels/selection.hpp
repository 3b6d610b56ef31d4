// The fair rule by which a list is cut: where there are more candidates than slots the largest membranes stay, ties by
// a fixed hash of the id, so that no neuron is favoured for its place. As in snnjax/ops/select_spikes.py.
#pragma once

#include "workers.hpp"

namespace snnjax {

// The 32-bit finaliser of MurmurHash3 (Appleby 2011), a bijection: no two ids tie.
constexpr unsigned hashOf(unsigned id) {
  id = (id ^ (id >> 16)) * 0x85EBCA6BU;
  id = (id ^ (id >> 13)) * 0xC2B2AE35U;
  return id ^ (id >> 16);
}

// A place in the order of candidates.
struct Rank {
  float v;
  unsigned hash;
};

constexpr bool goesBefore(Rank a, Rank b) { return a.v > b.v || (a.v == b.v && a.hash < b.hash); }

// Keeps all that does not go behind `last`.
struct Cut {
  bool keeps_all, keeps_none;
  Rank last;
  unsigned passes;  // over the candidates, that the search took

  bool keeps(float v, unsigned id) const {
    if (keeps_all) return true;
    return !keeps_none && !goesBefore(last, {v, hashOf(id)});
  }
};

// The cut that keeps the first `slots` of `count` candidates. `forEach(body)` calls body(v, id) for each candidate,
// always in the same order. A search by pivots: each pass counts what goes before the pivot, the next pivot is the
// middle one (in order of place) of those that remain between the bounds; no memory besides. Workers that share a row
// all search.
template <class ForEach>
inline Cut findCut(unsigned count, unsigned slots, ForEach&& forEach) {
  Cut cut = {count <= slots, slots == 0, {0.0f, 0}, 0};
  if (cut.keeps_all || cut.keeps_none) return cut;
  bool has_upper = false, has_lower = false;
  Rank upper = {}, lower = {};  // the last to stay lies strictly between
  unsigned before = 0;          // candidates up to `upper`, that one included
  const auto isBetween = [&](Rank r) {
    return (!has_upper || goesBefore(upper, r)) && (!has_lower || goesBefore(r, lower));
  };
  for (unsigned between = count;;) {
    unsigned place = 0, larger = 0;
    cut.passes += 2;
    forEach([&](float v, unsigned id) {
      const Rank rank = {v, hashOf(id)};
      if (isBetween(rank) && place++ == between / 2) cut.last = rank;
    });
    forEach([&](float v, unsigned id) {
      const Rank rank = {v, hashOf(id)};
      if (isBetween(rank) && goesBefore(rank, cut.last)) ++larger;
    });
    if (before + larger + 1 == slots || between <= 1) return cut;
    if (before + larger >= slots) {
      has_lower = true;
      lower = cut.last;
      between = larger;
    } else {
      has_upper = true;
      upper = cut.last;
      before += larger + 1;
      between -= larger + 1;
    }
  }
}

}  // namespace snnjax
