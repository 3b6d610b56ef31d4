// Lists of the spikes of a step of a recurrent layer, with their membranes, and the fair rule among them.
#pragma once

#include "selection.hpp"

namespace snnjax {

constexpr unsigned kNoRow = ~0U;  // ends a list of rows without a count

// What a neuron sends: if it fires its membrane, which has some bit set, as a zero becomes a negative one; else no bit.
inline float toSend(float fired, float v) { return fired == 0.0f ? 0.0f : v == 0.0f ? -0.0f : v; }
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
inline float2 toSend(float2 fired, float2 v) {
  const float2 none = {0.0f, 0.0f}, negative = {-0.0f, -0.0f};
  return keptWhere(fired != none, bitsOf<float2>(bitsOf<Mask>(v) | bitsOf<Mask>(keptWhere(v == none, negative))));
}
#endif
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
  // How many spikes of a list the fair rule prefers to one with this membrane and row.
  unsigned numPreferred(unsigned list, float v, unsigned row_of_v) const {
    const float* const others = membranes + list * slots;
    const Standing found = standingOf(others, count(list), v);
    unsigned preferred = found.above;
    for (unsigned k = 0; found.equal > 0 && k < count(list); ++k) {
      preferred += others[k] == v && hashOf(row(list, k) / columns) < hashOf(row_of_v / columns) ? 1 : 0;
    }
    return preferred;
  }
  // The same in the lists [first, last).
  unsigned numPreferred(unsigned first, unsigned last, float v, unsigned row_of_v) const {
    unsigned preferred = 0;
    for (unsigned list = first; list < last; ++list) preferred += numPreferred(list, v, row_of_v);
    return preferred;
  }
};

}  // namespace snnjax
