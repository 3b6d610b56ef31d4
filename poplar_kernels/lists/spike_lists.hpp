// Lists of the spikes of a step of a recurrent layer, with their membranes, and the fair rule among them.
#pragma once

#include "selection.hpp"

namespace snnjax {

// What a neuron sends: its membrane, of which some bit is set (a zero becomes negative), if it fires; else no bit.
inline float toSend(float fired, float v) { return fired == 0.0f ? 0.0f : v == 0.0f ? -0.0f : v; }
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
inline float2 toSend(float2 fired, float2 v) {
  const float2 none = {0.0f, 0.0f}, negative = {-0.0f, -0.0f};
  return keptWhere(fired != none, bitsOf<float2>(bitsOf<Mask>(v) | bitsOf<Mask>(keptWhere(v == none, negative))));
}
#endif
inline bool isSent(float v) { return bitsOf<unsigned>(v) != 0; }

// Below all membranes that are sent. So many membranes of a list are followed by it where they end within a pair, or
// where there are none.
constexpr float kNoMembrane = -__builtin_inff();
inline void endPairs(float* membranes, unsigned count) {
  if (count % 2 == 1) membranes[count] = kNoMembrane;
  if (count == 0) membranes[0] = membranes[1] = kNoMembrane;
}

// Lists of ListSpikes or JoinSpikes: a count and rows each, and their membranes, in pairs of which there is one at
// least.
struct SpikeLists {
  const unsigned* rows;    // [lists, 1 + slots]
  const float* membranes;  // [lists, slots], an even number of slots
  unsigned lists, slots, columns;

  unsigned count(unsigned list) const { return rows[list * (1 + slots)]; }
  unsigned row(unsigned list, unsigned k) const { return rows[list * (1 + slots) + 1 + k]; }
  float membrane(unsigned list, unsigned k) const { return membranes[list * slots + k]; }
  // The spikes of the lists before one, of all, and of the longest list.
  struct Counts {
    unsigned before = 0, all = 0, most = 0;
  };
  Counts counts(unsigned own) const {
    Counts counts;
    const auto add = [&](unsigned first, unsigned last) {
      for (unsigned list = first; list < last; ++list) {
        counts.all += count(list);
        counts.most = larger(counts.most, count(list));
      }
    };
    add(0, own);
    counts.before = counts.all;
    add(own, lists);
    return counts;
  }
  // Calls body(list, k) for the spikes of a worker: every sixth of all.
  template <class Body>
  void forEachOwn(unsigned worker, Body&& body) const {
    unsigned k = worker;
    for (unsigned list = 0; list < lists; k -= count(list++)) {
      for (; k < count(list); k += poplar::MultiVertex::numWorkers()) body(list, k);
    }
  }
  // How many spikes the fair rule prefers to one with this membrane and row, where the longest list has `most`.
  unsigned rankOf(float v, unsigned row_of_v, unsigned most) const {
    Standing found(v);
    for (unsigned list = 0; list < lists; ++list) found.add(membranes + list * slots);
    for (unsigned list = 0; most > 2 && list < lists; ++list) {
      for (unsigned k = 2; k < count(list); k += 2) found.add(membranes + list * slots + k);
    }
    return found.above() + (found.equal() > 1 ? tiesBefore(v, row_of_v) : 0);
  }

 private:
  unsigned tiesBefore(float v, unsigned row_of_v) const {
    unsigned before = 0;
    for (unsigned list = 0; list < lists; ++list) {
      for (unsigned k = 0; k < count(list); ++k) {
        before += membrane(list, k) == v && hashOf(row(list, k) / columns) < hashOf(row_of_v / columns) ? 1 : 0;
      }
    }
    return before;
  }
};

}  // namespace snnjax
