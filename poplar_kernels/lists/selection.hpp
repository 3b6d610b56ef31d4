// The fair rule that cuts a list: of more candidates than slots the largest membranes are kept, ties broken by a fixed
// hash of the id, so that no position is favoured. As in snnjax/ops/select_spikes.py.
#pragma once

#include "../conventions.hpp"
#include "../numbers.hpp"
#include "../vertex.hpp"

namespace snnjax {

// Keeps membranes above a bound and, of those equal to it, ids up to a hash: two words (conventions.hpp).
struct Limit {
  float bound;
  unsigned last_hash;

  static Limit all() { return {-__builtin_inff(), ~0U}; }
  static Limit none() { return {__builtin_nanf(""), 0}; }
  // From the next float on, which is above both zeros if `v` is one.
  static Limit above(float v) { return {floatOf(keyOf(v == 0.0f ? 0.0f : v) + 1), ~0U}; }
  static Limit from(const unsigned* words) { return {bitsOf<float>(words[0]), words[1]}; }
  void to(unsigned* words) const {
    words[0] = bitsOf<unsigned>(bound);
    words[1] = last_hash;
  }

  bool keeps(float v, unsigned id) const { return v > bound || (v == bound && hashOf(id) <= last_hash); }
};

// A limit, and the cost of the search for it: passes that count membranes above a bound, passes for the next one beyond
// a bound, passes over the ties, and the number of ties.
struct Cut {
  Limit limit;
  unsigned counts = 0, walks = 0, tie_passes = 0, ties = 0;
};

// The largest hash among the `slots` ids kept at the cut's bound, which are those with the smallest hashes.
inline unsigned lastHash(Cut& cut, unsigned slots, auto&& forEach) {
  unsigned first = 0, last = ~0U;
  while (first < last) {
    const unsigned middle = first + (last - first) / 2;
    unsigned counted = 0, ties = 0;
    forEach([&](float v, unsigned id) {
      if (v != cut.limit.bound) return;
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
inline unsigned numAbove(const float* v, unsigned count, bool is_at_register, float bound) {
  unsigned above = 0, k = 0;
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
  for (; k < count; ++k) above += v[k] > bound ? 1 : 0;
  return above;
}

// Of `count` floats, from 64 bits on, the least one above the bound, or the largest one below it; if there is none, an
// infinity.
template <bool above>
inline float nextBeyond(const float* v, unsigned count, float bound) {
  float next = above ? __builtin_inff() : -__builtin_inff();
  unsigned k = 0;
  using Of = Numbers<float2>;
  float2 lanes = Of::fill(next), others = lanes;
  const float2 none = lanes;
  const auto take = [&](float2& of, float2 x) {
    if constexpr (above) {
      of = smaller(of, chosen(x > Of::fill(bound), x, none));
    } else {
      of = larger(of, chosen(x < Of::fill(bound), x, none));
    }
  };
  for (; k + 4 <= count; k += 4) {
    take(lanes, Of::load(v + k));
    take(others, Of::load(v + k + 2));
  }
  if (k + 2 <= count) take(lanes, Of::load(v + k)), k += 2;
  lanes = above ? smaller(lanes, others) : larger(lanes, others);
  next = above == (lanes[0] < lanes[1]) ? lanes[0] : lanes[1];
  for (; k < count; ++k) {
    if (above ? v[k] > bound && v[k] < next : v[k] < bound && v[k] > next) next = v[k];
  }
  return next;
}

// Of floats, which come in runs from 64 bits on, how many lie above `v`, and how many equal it.
class Standing {
 public:
  explicit Standing(float v) : v_(v) {}
  void add(const float* others, unsigned count) {
    unsigned k = 0;
    using Of = Numbers<float2>;
    for (; k + 2 <= count; k += 2) {
      above_ += fires(Of::load(others + k), Of::fill(v_));
      at_least_ += firesAt(Of::load(others + k), Of::fill(v_));
    }
    if (k < count) {
      above_ += float2{fires(others[k], v_), 0.0f};
      at_least_ += float2{firesAt(others[k], v_), 0.0f};
    }
  }
  unsigned above() const { return static_cast<unsigned>(above_[0] + above_[1]); }
  unsigned equal() const { return static_cast<unsigned>(at_least_[0] + at_least_[1]) - above(); }

 private:
  float2 above_ = {0.0f, 0.0f}, at_least_ = {0.0f, 0.0f};
  float v_;
};

struct Extremes {
  float least = __builtin_inff(), largest = -__builtin_inff();
  void add(float v) {
    least = v < least ? v : least;
    largest = v > largest ? v : largest;
  }
};

inline Extremes extremesOf(auto&& forEach) {
  Extremes extremes;
  forEach([&](float v, unsigned) { extremes.add(v); });
  return extremes;
}

// Candidates that the search steps over one by one, once a bound is so near.
constexpr unsigned kFewBeyond = 3;

// The cut that keeps the first `slots` of `count` candidates. `forEach(body)` calls body(v, id) for each of them,
// `countAbove(bound)` says how many lie above it, and `next(bound, above)` is the membrane next to it. The last
// membrane to keep is found between the smallest and the largest by bisecting the floats; this ends as soon as a bound
// separates two candidates. Where few lie between them and a bound, the search goes there one by one, so that how near
// they are to each other does not matter, but for ties, which are found by bisecting their hashes. It needs no extra
// memory; workers that share a row all search.
inline Cut findCut(unsigned count, unsigned slots, Extremes extremes, auto&& countAbove, auto&& next, auto&& forEach) {
  if (count <= slots) return {Limit::all()};
  if (slots == 0) return {Limit::none()};
  Cut cut;
  unsigned first = keyOf(extremes.least), last = keyOf(extremes.largest), above = 0;
  bool may_walk = true;
  unsigned middle = first + (last - first) / 2;
  while (first < last) {
    const unsigned counted = countAbove(floatOf(middle));
    ++cut.counts;
    cut.limit = Limit::above(floatOf(middle));
    if (counted == slots) return cut;
    const bool is_low = counted > slots;
    const unsigned beyond = is_low ? counted - slots : slots - counted;
    const float bound = floatOf(is_low ? middle : middle + 1);
    if (is_low) {
      first = middle + 1;
    } else {
      last = middle;
      above = counted;
    }
    middle = first + (last - first) / 2;
    if (!may_walk || beyond > kFewBeyond) continue;
    may_walk = false;  // with ties among them it is no use
    cut.walks = beyond;
    float nearest = bound;
    for (unsigned k = 0; k < beyond; ++k) nearest = next(nearest, is_low);
    const unsigned key = keyOf(nearest) - (is_low ? 0 : 1);
    if (key - first < last - first) middle = key;
  }
  cut.limit.bound = floatOf(first);
  cut.limit.last_hash = lastHash(cut, slots - above, forEach);
  return cut;
}

}  // namespace snnjax
