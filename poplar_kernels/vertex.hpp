// What vertices are made of: short names of fields, and how the workers of a tile share the work of a MultiVertex.
#pragma once

#include <poplar/Vertex.hpp>
#include <type_traits>

namespace snnjax {

// Contiguous regions on the vertex's own tile, aligned to 8 bytes for 64-bit loads and stores. A ONE_PTR carries no
// size: sizes are states.
template <class T>
using In = poplar::Input<poplar::Vector<T, poplar::VectorLayout::ONE_PTR, 8>>;
template <class T>
using Out = poplar::Output<poplar::Vector<T, poplar::VectorLayout::ONE_PTR, 8>>;
template <class T>
using InOut = poplar::InOut<poplar::Vector<T, poplar::VectorLayout::ONE_PTR, 8>>;

// A field or state that only some instances of a vertex have; in the others it takes no space, on the tile either.
struct Nothing {};
template <bool is_there, class Field>
using If = std::conditional_t<is_there, Field, Nothing>;

// Elements [first, last).
struct Range {
  unsigned first, last;

  constexpr unsigned count() const { return last - first; }
};

constexpr unsigned smaller(unsigned a, unsigned b) { return a < b ? a : b; }
constexpr unsigned larger(unsigned a, unsigned b) { return a > b ? a : b; }

// The share of `worker` in `count` elements, in whole units. Shares are as even as units allow, in worker order.
constexpr Range shareAmong(unsigned num_workers, unsigned count, unsigned worker, unsigned unit = 1) {
  const unsigned units = (count + unit - 1) / unit;
  const unsigned each = units / num_workers, more = units % num_workers;
  const unsigned first = worker * each + smaller(worker, more);
  const unsigned last = first + each + (worker < more ? 1 : 0);
  return {smaller(first * unit, count), smaller(last * unit, count)};
}

// Shares of the workers without a division, which a tile has only in software: the first ones are equal, the last may
// be shorter or empty. For loops so short that the even shares of shareOf() would take longer.
inline Range quickShareOf(unsigned count, unsigned worker) {
  constexpr unsigned kSixth = 0x10000 / 6 + 1;  // in units of 1 / 65536
  const unsigned each = (count + 5) * kSixth >> 16;
  return {smaller(worker * each, count), smaller((worker + 1) * each, count)};
}

inline Range shareOf(unsigned count, unsigned worker, unsigned unit = 1) {
  return shareAmong(poplar::MultiVertex::numWorkers(), count, worker, unit);
}

// What a worker does where it does not matter who does it. A host runs the workers of a vertex one after the other, so
// there the first does all, and what comes before the work is done once. Costs go by shareOf() everywhere.
inline Range workOf(unsigned count, unsigned worker, unsigned unit = 1) {
#ifdef __IPU__
  return shareOf(count, worker, unit);
#else
  static_cast<void>(unit);
  return worker == 0 ? Range{0, count} : Range{count, count};
#endif
}

// The work on `rows` rows: a row each while there are enough of them, else several workers to a row.
struct RowShares {
  unsigned rows, shares;  // shares of each row

  explicit RowShares(unsigned num_rows)
      : rows(num_rows), shares(larger(poplar::MultiVertex::numWorkers() / larger(num_rows, 1), 1)) {}

  // Calls body(row, share) for all of this worker's shares.
  void forEach(unsigned worker, auto&& body) const {
    for (unsigned item = worker; item < rows * shares; item += poplar::MultiVertex::numWorkers()) {
      body(item / shares, item % shares);
    }
  }
};

// Elements of T in a 32-bit word. A worker writes whole words: a tile stores 16 bits by reading and writing 32, and
// what another worker writes beside them in between is lost.
template <class T>
constexpr unsigned kPerWord = sizeof(T) < 4 ? 4 / sizeof(T) : 1;

// And in the 64 bits that one load or store moves.
template <class T>
constexpr unsigned kPerVector = 8 / sizeof(T);

// How many rows of `width` elements at a time workers share a table by when writing, so that no two write to the same
// word.
template <class T>
constexpr unsigned rowsPerUnit(unsigned width) {
  return width % kPerWord<T> == 0 ? 1 : kPerWord<T>;
}

// Calls body(k, row) for each entry of numbers[count] that names a row of `own`, in their order; the number of the
// table's first row is `first_row`.
inline void forEachOwnRow(const unsigned* numbers, unsigned count, unsigned first_row, Range own, auto&& body) {
  for (unsigned k = 0; k < count; ++k) {
    const unsigned row = numbers[k] - first_row;
    if (row - own.first < own.last - own.first) body(k, row);  // below the share it wraps around: also larger
  }
}

// How often body is called.
inline unsigned countOwnRows(const unsigned* numbers, unsigned count, unsigned first_row, Range own) {
  unsigned found = 0;
  forEachOwnRow(numbers, count, first_row, own, [&](unsigned, unsigned) { ++found; });
  return found;
}

}  // namespace snnjax
