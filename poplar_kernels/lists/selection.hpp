// The fair rule that cuts a list: of more candidates than slots the largest membranes are kept, ties broken by a fixed
// hash of the id, so that no position is favoured. As in snnjax/ops/select_spikes.py.
#pragma once

#include "../conventions.hpp"
#include "../numbers.hpp"
#include "../workers.hpp"

namespace snnjax {

// Keeps membranes above a bound and, of those equal to it, ids up to a hash.
struct Cut {
  float bound;
  bool keeps_ties;
  unsigned last_hash;
  // The cost of the search: passes that count membranes above a bound, passes over the ties, and the number of ties.
  unsigned counts, tie_passes, ties;

  bool keeps(float v, unsigned id) const { return v > bound || (keeps_ties && v == bound && hashOf(id) <= last_hash); }
};

// The same in two words (conventions.hpp).
struct Limit {
  float bound;
  unsigned last_hash;

  static Limit all() { return {-__builtin_inff(), ~0U}; }
  static Limit none() { return {__builtin_nanf(""), 0}; }
  // The next float above a bound that keeps none of those equal to it.
  static Limit of(const Cut& cut) {
    if (cut.keeps_ties) return {cut.bound, cut.last_hash};
    return {floatOf(keyOf(cut.bound == 0.0f ? 0.0f : cut.bound) + 1), ~0U};
  }
  static Limit from(const unsigned* words) { return {bitsOf<float>(words[0]), words[1]}; }
  void to(unsigned* words) const {
    words[0] = bitsOf<unsigned>(bound);
    words[1] = last_hash;
  }

  bool keeps(float v, unsigned id) const { return v > bound || (v == bound && hashOf(id) <= last_hash); }
};

// The largest hash among the `slots` ids kept at the cut's bound, which are those with the smallest hashes.
template <class ForEach>
inline unsigned lastHash(Cut& cut, unsigned slots, ForEach&& forEach) {
  unsigned first = 0, last = ~0U;
  while (first < last) {
    const unsigned middle = first + (last - first) / 2;
    unsigned counted = 0, ties = 0;
    forEach([&](float v, unsigned id) {
      if (v != cut.bound) return;
      ++ties;
      counted += hashOf(id) <= middle ? 1 : 0;
    });
    ++cut.tie_passes;
    cut.ties = ties;
    if (counted == slots) return middle;
    if (counted > slots) {
      last = middle;
    } else {
      first = middle + 1;
    }
  }
  return first;
}

// How many of `count` floats lie above the bound. The first may be aligned to 64 bits or not.
inline unsigned numAbove(const float* v, unsigned count, [[maybe_unused]] bool is_at_register, float bound) {
  unsigned above = 0, k = 0;
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
  using Of = Numbers<float2>;
  if (!is_at_register && count > 0) above += v[k++] > bound ? 1 : 0;
  float2 lanes = {0.0f, 0.0f}, others = lanes;
  for (; k + 4 <= count; k += 4) {  // two pairs, which do not wait for each other
    lanes += fires(Of::load(v + k), Of::fill(bound));
    others += fires(Of::load(v + k + 2), Of::fill(bound));
  }
  if (k + 2 <= count) lanes += fires(Of::load(v + k), Of::fill(bound)), k += 2;
  lanes += others;
  above += static_cast<unsigned>(lanes[0] + lanes[1]);
#endif
  for (; k < count; ++k) above += v[k] > bound ? 1 : 0;
  return above;
}

// How many of `count` floats, from 64 bits on, lie above `v`, and how many equal it.
struct Standing {
  unsigned above, equal;
};

inline Standing standingOf(const float* others, unsigned count, float v) {
  Standing found = {0, 0};
  unsigned k = 0;
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
  using Of = Numbers<float2>;
  float2 above = {0.0f, 0.0f}, at_least = {0.0f, 0.0f};
  for (; k + 2 <= count; k += 2) {
    above += fires(Of::load(others + k), Of::fill(v));
    at_least += firesAt(Of::load(others + k), Of::fill(v));
  }
  found.above = static_cast<unsigned>(above[0] + above[1]);
  found.equal = static_cast<unsigned>(at_least[0] + at_least[1]) - found.above;
#endif
  for (; k < count; ++k) {
    found.above += others[k] > v ? 1 : 0;
    found.equal += others[k] == v ? 1 : 0;
  }
  return found;
}

struct Extremes {
  float least = __builtin_inff(), largest = -__builtin_inff();
  void add(float v) {
    least = v < least ? v : least;
    largest = v > largest ? v : largest;
  }
};

template <class ForEach>
inline Extremes extremesOf(ForEach&& forEach) {
  Extremes extremes;
  forEach([&](float v, unsigned) { extremes.add(v); });
  return extremes;
}

// The cut that keeps the first `slots` of `count` candidates. `forEach(body)` calls body(v, id) for each of them, and
// `countAbove(bound)` says how many lie above it. The last membrane to keep is found between the smallest and the
// largest: a few times where it lies if they are spread evenly, then by bisecting the floats; this ends as soon as a
// bound separates two candidates. Ties are found by bisecting their hashes. It needs no extra memory; workers that
// share a row all search.
template <class CountAbove, class ForEach>
inline Cut findCut(unsigned count, unsigned slots, Extremes extremes, CountAbove&& countAbove, ForEach&& forEach) {
  constexpr float kInfinity = __builtin_inff();
  if (count <= slots || slots == 0) return {count <= slots ? -kInfinity : kInfinity, false, 0, 0, 0, 0};
  Cut cut = {0.0f, true, ~0U, 0, 0, 0};
  unsigned first = keyOf(extremes.least), last = keyOf(extremes.largest), above = 0;
  while (first < last) {
    const unsigned middle = first + (last - first) / 2;
    const float bound = floatOf(middle);
    const unsigned counted = countAbove(bound);
    ++cut.counts;
    if (counted == slots) return {bound, false, 0, cut.counts, 0, 0};
    if (counted < slots) {
      last = middle;
      above = counted;
    } else {
      first = middle + 1;
    }
  }
  cut.bound = floatOf(first);
  cut.last_hash = lastHash(cut, slots - above, forEach);
  return cut;
}

}  // namespace snnjax
