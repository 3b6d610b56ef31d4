// The spike lists that vertices read, and masks of who is listed and who is kept (conventions.hpp).
#pragma once

#include <bit>
#include <cstring>

#include "../conventions.hpp"
#include "../vertex.hpp"

namespace snnjax {

// Records are not trusted: counts are clamped to the capacity, ids out of range name no row.
template <class Id>
struct List {
  const Id* record;
  unsigned capacity;

  unsigned spikes() const { return smaller(static_cast<unsigned>(record[kKept]), listed()); }
  unsigned listed() const { return smaller(static_cast<unsigned>(record[kListed]), capacity); }
  unsigned trueSpikes() const { return static_cast<unsigned>(record[kTrueSpikes]); }
  const Id* ids() const { return record + kListHeader; }
  // The spikes of a worker's share of the neurons.
  Range spikesOfWorker(unsigned worker) const {
    const unsigned end = worker + 1 == kShares ? kKept : kStarts + worker;
    return {worker == 0 ? 0 : smaller(static_cast<unsigned>(record[kStarts + worker - 1]), capacity),
            smaller(static_cast<unsigned>(record[end]), capacity)};
  }
};

inline Range neuronsOfWorker(unsigned num_neurons, unsigned worker) {
  const unsigned each = neuronsOfShare(num_neurons);
  return {smaller(worker * each, num_neurons), smaller((worker + 1) * each, num_neurons)};
}

// Two entries in one store, the first of which is at a word.
inline void storeTwo(auto* to, unsigned first, unsigned second) {
  const unsigned word = second << 16 | first;
  std::memcpy(__builtin_assume_aligned(to, sizeof(word)), &word, sizeof(word));
}

// The header of a record.
template <class Id>
inline void storeHeader(Id* record, const unsigned (&header)[kListHeader]) {
  if constexpr (sizeof(Id) == sizeof(unsigned)) {
    for (unsigned i = 0; i < kListHeader; ++i) record[i] = static_cast<Id>(header[i]);
  } else {
    for (unsigned i = 0; i < kListHeader; i += 2) storeTwo(record + i, header[i], header[i + 1]);
  }
}

// Of a record with these ids; the first `spikes` of them ascend.
template <class Id, class Source>
inline void writeStarts(Id* record, const Source* ids, unsigned spikes, unsigned num_neurons) {
  const unsigned each = neuronsOfShare(num_neurons);
  unsigned k = 0, bound = 0;
  for (unsigned share = 1; share < kShares; ++share) {
    bound += each;
    while (k < spikes && static_cast<unsigned>(ids[k]) < bound) ++k;
    record[kStarts + share - 1] = static_cast<Id>(k);
  }
}

// The row that an id names in a matrix of `num_rows` rows plus one. That last row serves every id out of range
// (negative ones too, as unsigned): zeros to read, scratch to write. One `min` instruction replaces a test and a
// branch.
inline unsigned rowOf(auto id, unsigned num_rows) { return smaller(static_cast<unsigned>(id), num_rows); }

// How many of `count` ascending ids lie below `id`. For unsorted ids, some number up to `count`.
inline unsigned numBelow(const auto* ids, unsigned count, unsigned id) {
  unsigned first = 0;
  while (count > 0) {
    const unsigned half_way = count / 2;
    if (static_cast<unsigned>(ids[first + half_way]) < id) {
      first += half_way + 1;
      count -= half_way + 1;
    } else {
      count = half_way;
    }
  }
  return first;
}

// The entries of an ascending group whose ids lie in `rows`.
inline Range entriesWithin(const auto* ids, unsigned count, Range rows) {
  const unsigned first = numBelow(ids, count, rows.first);
  return {first, first + numBelow(ids + first, count - first, rows.last)};
}

// The first bit of a mask, counted from the highest, which it loses.
inline unsigned takeFirstMark(unsigned& mask) {
  const auto i = static_cast<unsigned>(std::countl_zero(mask));
  mask ^= kFirstMark >> i;
  return i;
}

// The marks of the pairs of a word, of a row of so many pairs.
inline unsigned marksOfWord(const unsigned* row, unsigned pairs, unsigned word) {
  const unsigned end = smaller((word + 1) * (kNeuronsOfMark / 2), pairs);
  unsigned all = 0, pair = word * (kNeuronsOfMark / 2);
  for (; pair + 2 <= end; pair += 2) all |= row[pair] | row[pair + 1];  // two a turn
  return pair < end ? all | row[pair] : all;
}

// Calls body(i) for the bits of a mask.
inline void forEachMark(unsigned mask, auto&& body) {
  while (mask != 0) body(takeFirstMark(mask));
}

// The kept and the listed neurons of a word, of the first `count` neurons.
constexpr unsigned ofFirst(unsigned count, unsigned word) {
  const unsigned own = smaller(larger(count, word * kNeuronsOfMark) - word * kNeuronsOfMark, kNeuronsOfMark);
  return own == 0 ? 0 : ~0U << (32 - own);
}
constexpr unsigned keptOf(unsigned mask, unsigned count, unsigned word) { return mask & ofFirst(count, word); }
constexpr unsigned listedOf(unsigned mask, unsigned count, unsigned word) {
  return mask << kNeuronsOfMark & ofFirst(count, word);
}

}  // namespace snnjax
