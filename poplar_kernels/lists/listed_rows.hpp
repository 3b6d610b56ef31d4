// Sums over, dots with, and updates of the rows of a matrix that a list names: the loops of all sparse codelets. Rows
// have an even number of columns on each tile.
#pragma once

#include "../numbers.hpp"
#include "lists.hpp"

namespace snnjax {

// Row-major [num_rows + 1, columns]; the last row takes ids out of range.
template <class T>
struct ListedRows {
  T* data;
  unsigned num_rows, columns;

  T* row(auto id) const { return data + rowOf(id, num_rows) * columns; }
  ListedRows ofPairs() const { return {data, num_rows, 2}; }
};

// Rows named by ids that a codelet of the same pass made: none is out of range.
template <class T>
struct MadeRows {
  T* data;
  unsigned columns;

  T* row(unsigned id) const { return data + id * columns; }
  MadeRows ofPairs() const { return {data, 2}; }
};

// A value for each listed id, or 1 for all.
struct Ones {
  static constexpr bool kSkips = false;
  float operator[](unsigned) const { return 1.0f; }
};

template <class T>
struct Values {
  static constexpr bool kSkips = true;  // an entry of value 0 adds nothing, whatever its weights
  const T* data;
  float operator[](unsigned k) const { return toFloat(data[k]); }
};

// use(column, pair, sum_k values[k] * rows[ids[k], column ...]) for kPairs neighbouring pairs of columns from `first`.
template <unsigned kPairs, class Rows, class Id, class V, class Use>
inline void sumBlock(Rows rows, const Id* ids, unsigned count, V values, unsigned first, Use&& use) {
  using Of = Numbers<float2>;
  float2 sums[kPairs] = {};
  unsigned k = 0;
  if constexpr (!V::kSkips) {
    for (; k + 2 <= count; k += 2) {  // two a turn
      const auto *row = rows.row(ids[k]) + first, *next = rows.row(ids[k + 1]) + first;
      for (unsigned i = 0; i < kPairs; ++i) sums[i] = sums[i] + Of::load(row + 2 * i) + Of::load(next + 2 * i);
    }
  }
  for (; k < count; ++k) {
    const auto* row = rows.row(ids[k]) + first;
    if constexpr (V::kSkips) {
      const float value = values[k];
      if (value == 0.0f) continue;
      for (unsigned i = 0; i < kPairs; ++i) sums[i] += value * Of::load(row + 2 * i);
    } else {
      for (unsigned i = 0; i < kPairs; ++i) sums[i] += Of::load(row + 2 * i);
    }
  }
  for (unsigned i = 0; i < kPairs; ++i) use(first + 2 * i, Of{}, sums[i]);
}

// A number of pairs, whose sums stay in registers.
template <unsigned kPairs>
using Pairs = std::integral_constant<unsigned, kPairs>;

// use(first column, Pairs) of so many pairs of columns, at the most kMost.
template <unsigned kMost, class Use>
inline void useBlock(unsigned column, unsigned pairs, Use&& use) {
  if constexpr (kMost > 0) {
    if (pairs == kMost) return use(column, Pairs<kMost>{});
    useBlock<kMost - 1>(column, pairs, use);
  }
}

// The same for all columns, in blocks of up to kMost pairs.
template <unsigned kMost, class Use>
inline void forEachBlock(unsigned columns, Use&& use) {
  unsigned column = 0;
  for (; column + 2 * kMost <= columns; column += 2 * kMost) use(column, Pairs<kMost>{});
  useBlock<kMost - 1>(column, (columns - column) / 2, use);
}

// The same for all columns, each of which is summed in the order of the list.
template <class Rows, class Id, class V, class Use>
inline void sumListedRows(Rows rows, const Id* ids, unsigned count, V values, Use&& use) {
  if (rows.columns == 2) {  // the row's address is its id: no multiplication
    return sumBlock<1>(rows.ofPairs(), ids, count, values, 0, use);
  }
  forEachBlock<pairsAtOnce(V::kSkips)>(
      rows.columns, [&](unsigned column, auto pairs) { sumBlock<pairs>(rows, ids, count, values, column, use); });
}

// Rows [first, last) that have a bit, of which bit `first` is the first row: in every `stride`-th word from that of bit
// first on.
struct Marks {
  const unsigned* words;
  unsigned stride, first, last;
  static constexpr unsigned kBits = 32;

  // Calls body(row). Inputs with very many rows fire in all those of a word, which need no search.
  void forEach(auto&& body) const {
    forEachWord([&](unsigned bit, unsigned mask) {
      if (mask != ~0U) return forEachMark(mask, [&](unsigned i) { body(bit + i - first); });
      for (unsigned i = 0; i < kBits; ++i) body(bit + i - first);
    });
  }

  // Calls body(number of the first bit, word).
  void forEachWord(auto&& body) const {
    const unsigned start = first / kBits * kBits;
    for (unsigned bit = start, at = 0; bit < last; bit += kBits, at += stride) {
      unsigned mask = words[at];
      if (bit < first) mask &= ~0U >> (first - bit);
      if (last - bit < kBits) mask &= ~(~0U >> (last - bit));
      body(bit, mask);
    }
  }
};

// The same as sumListedRows, of marked rows.
template <unsigned kPairs, class Use>
inline void sumMarkedBlock(MadeRows<const float> rows, const Marks& marks, unsigned column, Use&& use) {
  using Of = Numbers<float2>;
  float2 sums[kPairs] = {};
  marks.forEach([&](unsigned id) {
    const float* const row = rows.row(id) + column;
    for (unsigned i = 0; i < kPairs; ++i) sums[i] += Of::load(row + 2 * i);
  });
  for (unsigned i = 0; i < kPairs; ++i) use(column + 2 * i, Of{}, sums[i]);
}

inline void sumMarkedRows(MadeRows<const float> rows, const Marks& marks, auto&& use) {
  forEachBlock<pairsAtOnce(false)>(
      rows.columns, [&](unsigned column, auto pairs) { sumMarkedBlock<pairs>(rows, marks, column, use); });
}

// use(k, <rows[ids[k]], vector>) for rows of 2 * kPairs columns, with the vector in registers; two a turn.
template <unsigned kPairs, class W, class Id, class G, class Use>
inline void dotShortRows(ListedRows<const W> rows, const Id* ids, unsigned count, const G* vector, Use&& use) {
  using Of = Numbers<float2>;
  float2 other[kPairs];
  for (unsigned i = 0; i < kPairs; ++i) other[i] = Of::load(vector + 2 * i);
  const auto rowAt = [&](unsigned k) { return rows.data + rowOf(ids[k], rows.num_rows) * (2 * kPairs); };
  unsigned k = 0;
  for (; k + 2 <= count; k += 2) {
    const W *const row = rowAt(k), *const next_row = rowAt(k + 1);
    float2 sums = Of::load(row) * other[0], next = Of::load(next_row) * other[0];
    for (unsigned i = 1; i < kPairs; ++i) {
      sums += Of::load(row + 2 * i) * other[i];
      next += Of::load(next_row + 2 * i) * other[i];
    }
    use(k, sums[0] + sums[1]);
    use(k + 1, next[0] + next[1]);
  }
  if (k < count) {
    const W* const row = rowAt(k);
    float2 sums = Of::load(row) * other[0];
    for (unsigned i = 1; i < kPairs; ++i) sums += Of::load(row + 2 * i) * other[i];
    use(k, sums[0] + sums[1]);
  }
}

// use(k + r, <rows[r], vector>) for rows of any even number of columns, which share the loads of the vector.
template <unsigned kRows, class W, class G, class Use>
inline void dotRows(const W* const (&rows)[kRows], const G* vector, unsigned columns, unsigned k, Use&& use) {
  using Of = Numbers<float2>;
  float2 sums[kRows];
  for (unsigned r = 0; r < kRows; ++r) sums[r] = Of::load(rows[r]) * Of::load(vector);
  forEachBlock<6>(columns - 2, [&](unsigned column, auto pairs) {
    for (unsigned j = column + 2; j < column + 2 + 2 * pairs; j += 2) {
      const float2 other = Of::load(vector + j);
      for (unsigned r = 0; r < kRows; ++r) sums[r] += Of::load(rows[r] + j) * other;
    }
  });
  for (unsigned r = 0; r < kRows; ++r) use(k + r, sums[r][0] + sums[r][1]);
}

// use(k, <rows[ids[k]], vector>) for every k.
template <class W, class Id, class G, class Use>
inline void dotListedRows(ListedRows<const W> rows, const Id* ids, unsigned count, const G* vector, Use&& use) {
  if (rows.columns == 2) return dotShortRows<1>(rows, ids, count, vector, use);
  if (rows.columns == 4) return dotShortRows<2>(rows, ids, count, vector, use);
  if (rows.columns == 6) return dotShortRows<3>(rows, ids, count, vector, use);
  unsigned k = 0;
  for (; k + 2 <= count; k += 2) dotRows<2>({rows.row(ids[k]), rows.row(ids[k + 1])}, vector, rows.columns, k, use);
  if (k < count) dotRows<1>({rows.row(ids[k])}, vector, rows.columns, k, use);
}

// rows[ids[k], column ...] += values[k] * vector[column ...] for kPairs neighbouring pairs of columns from `first`.
template <unsigned kPairs, class Id, class V, class G>
inline void addBlock(ListedRows<float> rows, const Id* ids, Range range, V values, const G* vector, unsigned first) {
  using Of = Numbers<float2>;
  float2 terms[kPairs];
  for (unsigned i = 0; i < kPairs; ++i) terms[i] = Of::load(vector + first + 2 * i);
  for (const unsigned k : range) {
    float* const row = rows.row(ids[k]) + first;
    for (unsigned i = 0; i < kPairs; ++i) {
      float* const at = row + 2 * i;
      if constexpr (V::kSkips) {
        Of::store(at, Of::load(at) + values[k] * terms[i]);
      } else {
        Of::store(at, Of::load(at) + terms[i]);
      }
    }
  }
}

// rows[ids[k]] += values[k] * vector for the entries in `range`, one after the other: duplicates add.
template <class Id, class V, class G>
inline void addToListedRows(ListedRows<float> rows, const Id* ids, Range range, V values, const G* vector) {
  if (rows.columns == 2) return addBlock<1>(rows.ofPairs(), ids, range, values, vector, 0);
  forEachBlock<pairsAtOnce(V::kSkips)>(
      rows.columns, [&](unsigned column, auto pairs) { addBlock<pairs>(rows, ids, range, values, vector, column); });
}

}  // namespace snnjax
