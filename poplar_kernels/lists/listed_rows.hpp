// Sums over, dots with, and updates of the rows of a matrix that a list names: the loops of all sparse codelets.
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

// use(column, numbers, sum_k values[k] * rows[ids[k], column ...]) for kBlocks neighbouring N of columns from `first`.
template <class N, unsigned kBlocks, class Rows, class Id, class V, class Use>
inline void sumBlock(Rows rows, const Id* ids, unsigned count, V values, unsigned first, Use&& use) {
  using Of = Numbers<N>;
  N sums[kBlocks];
  for (unsigned i = 0; i < kBlocks; ++i) sums[i] = Of::fill(0.0f);
  unsigned k = 0;
  if constexpr (!V::kSkips) {
    for (; k + 2 <= count; k += 2) {  // two a turn
      const auto *row = rows.row(ids[k]) + first, *next = rows.row(ids[k + 1]) + first;
      for (unsigned i = 0; i < kBlocks; ++i) {
        sums[i] = sums[i] + Of::load(row + i * Of::kCount) + Of::load(next + i * Of::kCount);
      }
    }
  }
  for (; k < count; ++k) {
    const auto* row = rows.row(ids[k]) + first;
    if constexpr (V::kSkips) {
      const float value = values[k];
      if (value == 0.0f) continue;
      for (unsigned i = 0; i < kBlocks; ++i) sums[i] += value * Of::load(row + i * Of::kCount);
    } else {
      for (unsigned i = 0; i < kBlocks; ++i) sums[i] += Of::load(row + i * Of::kCount);
    }
  }
  for (unsigned i = 0; i < kBlocks; ++i) use(first + i * Of::kCount, Of{}, sums[i]);
}

// So many neighbouring N of columns, whose sums stay in registers.
template <class N, unsigned kBlocks>
struct Block {
  using Number = N;
  static constexpr unsigned kCount = kBlocks;
};

#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
// use(first column, Block) of so many pairs of columns, at the most kMost.
template <unsigned kMost, class Use>
inline void useBlock(unsigned column, unsigned pairs, Use&& use) {
  if constexpr (kMost > 0) {
    if (pairs == kMost) return use(column, Block<float2, kMost>{});
    useBlock<kMost - 1>(column, pairs, use);
  }
}
#endif

// The same for all columns: in blocks of up to kMost pairs, or one by one.
template <unsigned kMost, class Use>
inline void forEachBlock(unsigned columns, Use&& use) {
  unsigned column = 0;
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
  if (columns % 2 == 0) {
    for (; column + 2 * kMost <= columns; column += 2 * kMost) use(column, Block<float2, kMost>{});
    return useBlock<kMost - 1>(column, (columns - column) / 2, use);
  }
#endif
  for (; column < columns; ++column) use(column, Block<float, 1>{});
}

// The same for all columns. Each column is summed in the order of the list, so both forms give the same bits.
template <class Rows, class Id, class V, class Use>
inline void sumListedRows(Rows rows, const Id* ids, unsigned count, V values, Use&& use) {
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
  if (rows.columns == 2) {  // the row's address is its id: no multiplication
    return sumBlock<float2, 1>(rows.ofPairs(), ids, count, values, 0, use);
  }
#endif
  forEachBlock<pairsAtOnce(V::kSkips)>(rows.columns, [&](unsigned column, auto block) {
    sumBlock<typename decltype(block)::Number, decltype(block)::kCount>(rows, ids, count, values, column, use);
  });
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
template <class N, unsigned kBlocks, class Use>
inline void sumMarkedBlock(MadeRows<const float> rows, const Marks& marks, unsigned column, Use&& use) {
  using Of = Numbers<N>;
  N sums[kBlocks];
  for (unsigned i = 0; i < kBlocks; ++i) sums[i] = Of::fill(0.0f);
  marks.forEach([&](unsigned id) {
    const auto* row = rows.row(id) + column;
    for (unsigned i = 0; i < kBlocks; ++i) sums[i] += Of::load(row + i * Of::kCount);
  });
  for (unsigned i = 0; i < kBlocks; ++i) use(column + i * Of::kCount, Of{}, sums[i]);
}

inline void sumMarkedRows(MadeRows<const float> rows, const Marks& marks, auto&& use) {
  forEachBlock<pairsAtOnce(false)>(rows.columns, [&](unsigned column, auto block) {
    sumMarkedBlock<typename decltype(block)::Number, decltype(block)::kCount>(rows, marks, column, use);
  });
}

// <row, vector>: even and odd columns are summed apart and added at the end, as two lanes would.
inline float dotRow(const auto* row, const auto* vector, unsigned columns) {
  float sums[2] = {0.0f, 0.0f};
  for (unsigned j = 0; j < columns; ++j) {
    const float product = toFloat(row[j]) * toFloat(vector[j]);
    sums[j % 2] = j < 2 ? product : sums[j % 2] + product;
  }
  return sums[0] + sums[1];
}

#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
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
  forEachBlock<6>(columns - 2, [&](unsigned column, auto block) {
    for (unsigned j = column + 2; j < column + 2 + 2 * block.kCount; j += 2) {
      const float2 other = Of::load(vector + j);
      for (unsigned r = 0; r < kRows; ++r) sums[r] += Of::load(rows[r] + j) * other;
    }
  });
  for (unsigned r = 0; r < kRows; ++r) use(k + r, sums[r][0] + sums[r][1]);
}
#endif

// use(k, <rows[ids[k]], vector>) for every k.
template <class W, class Id, class G, class Use>
inline void dotListedRows(ListedRows<const W> rows, const Id* ids, unsigned count, const G* vector, Use&& use) {
  unsigned k = 0;
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
  if (rows.columns == 2) return dotShortRows<1>(rows, ids, count, vector, use);
  if (rows.columns == 4) return dotShortRows<2>(rows, ids, count, vector, use);
  if (rows.columns == 6) return dotShortRows<3>(rows, ids, count, vector, use);
  if (rows.columns % 2 == 0 && rows.columns > 0) {
    for (; k + 2 <= count; k += 2) dotRows<2>({rows.row(ids[k]), rows.row(ids[k + 1])}, vector, rows.columns, k, use);
    if (k < count) dotRows<1>({rows.row(ids[k])}, vector, rows.columns, k, use);
    return;
  }
#endif
  for (; k < count; ++k) use(k, dotRow(rows.row(ids[k]), vector, rows.columns));
}

// rows[ids[k], column ...] += values[k] * vector[column ...] for kBlocks neighbouring N of columns from `first`.
template <class N, unsigned kBlocks, class Id, class V, class G>
inline void addBlock(ListedRows<float> rows, const Id* ids, Range range, V values, const G* vector, unsigned first) {
  using Of = Numbers<N>;
  N terms[kBlocks];
  for (unsigned i = 0; i < kBlocks; ++i) terms[i] = Of::load(vector + first + i * Of::kCount);
  for (const unsigned k : range) {
    float* const row = rows.row(ids[k]) + first;
    for (unsigned i = 0; i < kBlocks; ++i) {
      float* const at = row + i * Of::kCount;
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
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
  if (rows.columns == 2) {
    return addBlock<float2, 1>(ListedRows<float>{rows.data, rows.num_rows, 2}, ids, range, values, vector, 0);
  }
#endif
  forEachBlock<pairsAtOnce(V::kSkips)>(rows.columns, [&](unsigned column, auto block) {
    addBlock<typename decltype(block)::Number, decltype(block)::kCount>(rows, ids, range, values, vector, column);
  });
}

}  // namespace snnjax
