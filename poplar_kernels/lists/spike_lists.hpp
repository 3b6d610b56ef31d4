// Lists of the spikes of a step of a recurrent layer, with their membranes, and the fair rule among them.
#pragma once

#include "selection.hpp"

namespace snnjax {

// A list of rows without a count: where each begins in a tile's weights, one row up so that none is at the one that
// ends the list.
constexpr unsigned kNoRow = 0;

// What a neuron sends: if it fires its membrane, which has some bit set, as a zero becomes a negative one; else no bit.
inline float toSend(float fired, float v) { return fired == 0.0f ? 0.0f : v == 0.0f ? -0.0f : v; }
inline float2 toSend(float2 fired, float2 v) {
  const float2 none = {0.0f, 0.0f}, negative = {-0.0f, -0.0f};
  return keptWhere(fired != none, bitsOf<float2>(bitsOf<Mask>(v) | bitsOf<Mask>(keptWhere(v == none, negative))));
}
inline bool isSent(float v) { return bitsOf<unsigned>(v) != 0; }

// Lists of ListSpikes or JoinSpikes: a count and rows each, and their membranes.
struct SpikeLists {
  const unsigned* rows;    // [lists, 1 + slots]
  const float* membranes;  // [lists, slots], an even number of slots
  unsigned lists, slots, columns;

  unsigned count(unsigned list) const { return rows[list * (1 + slots)]; }
  unsigned row(unsigned list, unsigned k) const { return rows[list * (1 + slots) + 1 + k]; }
  float membrane(unsigned list, unsigned k) const { return membranes[list * slots + k]; }
  unsigned countOf(unsigned first, unsigned last) const {
    unsigned count_of_all = 0;
    for (unsigned list = first; list < last; ++list) count_of_all += count(list);
    return count_of_all;
  }
  // How many spikes the fair rule prefers to the k-th of a list: of that list, and of all.
  struct Rank {
    unsigned of_own, of_all;
  };
  Rank rankOf(unsigned own, unsigned k) const {
    const float v = membrane(own, k);
    Standing found(v);
    const auto add = [&](unsigned first, unsigned last) {
      for (unsigned list = first; list < last; ++list) found.add(membranes + list * slots, count(list));
    };
    add(own, own + 1);
    const unsigned of_own = found.above();
    add(0, own);
    add(own + 1, lists);
    const Rank rank = {of_own, found.above()};
    return found.equal() == 1 ? rank : withTies(rank, own, k);
  }

 private:
  Rank withTies(Rank rank, unsigned own, unsigned k_of_own) const {
    for (unsigned list = 0; list < lists; ++list) {
      for (unsigned k = 0; k < count(list); ++k) {
        const bool is_tie = membrane(list, k) == membrane(own, k_of_own);
        if (!is_tie || hashOf(id(list, k)) >= hashOf(id(own, k_of_own))) continue;
        ++rank.of_all;
        rank.of_own += list == own ? 1 : 0;
      }
    }
    return rank;
  }
  unsigned id(unsigned list, unsigned k) const { return row(list, k) / columns - 1; }
};

// Of spikes that are offered one by one the first `limit`, at least one, by the fair rule: their rows, kNoRow behind
// the last one, and from word 1 + limit on their keys, which are ordered as their membranes.
struct KeptSpikes {
  unsigned* words;
  unsigned limit, columns, offered = 0, last = 0, searches = 0;  // for the last one of a full list

  void offer(unsigned row, unsigned key) {
    const unsigned k = offered++;
    if (k < limit) return place(k, row, key);
    if (k == limit) findLast();
    if (!isBefore(key, row, last)) return;
    place(last, row, key);
    findLast();
  }
  void end() { words[smaller(offered, limit)] = kNoRow; }

 private:
  void place(unsigned k, unsigned row, unsigned key) {
    words[k] = row;
    words[1 + limit + k] = key;
  }
  bool isBefore(unsigned key, unsigned row, unsigned k) const {
    const unsigned other = words[1 + limit + k];
    return key == other ? hashOf(row / columns - 1) < hashOf(words[k] / columns - 1) : key > other;
  }
  void findLast() {
    last = 0;
    for (unsigned k = 1; k < limit; ++k) last = isBefore(words[1 + limit + k], words[k], last) ? last : k;
    ++searches;
  }
};
constexpr unsigned wordsOfKept(unsigned limit) { return 1 + 2 * limit; }

}  // namespace snnjax
