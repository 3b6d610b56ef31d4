// What vertices are made of: short names of fields, how the workers of a tile share the work of a MultiVertex, and the
// instances of a template.
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

// Elements [first, last), which a loop over a range takes one after the other; none where the last one is not behind
// the first.
struct Range {
  unsigned first, last;

  constexpr unsigned count() const { return last - first; }
  constexpr bool contains(unsigned i) const { return i - first < count(); }  // below the first it wraps around: false

  struct Iterator {
    unsigned i;
    constexpr unsigned operator*() const { return i; }
    constexpr void operator++() { ++i; }
    constexpr bool operator!=(Iterator end) const { return i < end.i; }
  };
  constexpr Iterator begin() const { return {first}; }
  constexpr Iterator end() const { return {last}; }
};

constexpr unsigned smaller(unsigned a, unsigned b) { return a < b ? a : b; }
constexpr unsigned larger(unsigned a, unsigned b) { return a > b ? a : b; }

// The share of `worker` in `count` elements, in whole units. Shares are as even as units allow, in worker order.
inline Range shareOf(unsigned count, unsigned worker, unsigned unit = 1) {
  const unsigned units = (count + unit - 1) / unit, workers = poplar::MultiVertex::numWorkers();
  const unsigned each = units / workers, more = units % workers;
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
    if (own.contains(row)) body(k, row);
  }
}

// How often body is called.
inline unsigned countOwnRows(const unsigned* numbers, unsigned count, unsigned first_row, Range own) {
  unsigned found = 0;
  forEachOwnRow(numbers, count, first_row, own, [&](unsigned, unsigned) { ++found; });
  return found;
}

// The instances of a vertex for types in the place of its last argument, behind those that are named: one for each that
// something uses, as each takes time to compile.
#define SNNJAX_INSTANCE(Vertex, T, ...) template class Vertex<__VA_ARGS__ __VA_OPT__(, ) T>;
#define SNNJAX_INSTANCES(Vertex, T, U, ...) \
  SNNJAX_INSTANCE(Vertex, T, __VA_ARGS__) SNNJAX_INSTANCE(Vertex, U, __VA_ARGS__)
#define SNNJAX_INSTANCES_OF_CHOICES(Vertex, ...) SNNJAX_INSTANCES(Vertex, false, true, __VA_ARGS__)
#define SNNJAX_INSTANCES_OF_FLOATS(Vertex, ...) SNNJAX_INSTANCES(Vertex, float, half, __VA_ARGS__)
#define SNNJAX_INSTANCES_OF_IDS(Vertex, ...) SNNJAX_INSTANCES(Vertex, unsigned short, int, __VA_ARGS__)
#define SNNJAX_INSTANCES_OF_INTEGERS(Vertex, ...) SNNJAX_INSTANCES(Vertex, int, unsigned, __VA_ARGS__)
#define SNNJAX_INSTANCES_OF_BITS(Vertex, ...) SNNJAX_INSTANCES(Vertex, unsigned, unsigned char, __VA_ARGS__)
#define SNNJAX_INSTANCES_OF_NUMBERS(Vertex, ...)  \
  SNNJAX_INSTANCES_OF_FLOATS(Vertex, __VA_ARGS__) \
  SNNJAX_INSTANCES_OF_INTEGERS(Vertex, __VA_ARGS__)
// Elements of any type, by their width.
#define SNNJAX_INSTANCES_OF_WIDTHS(Vertex, ...) \
  SNNJAX_INSTANCES_OF_BITS(Vertex, __VA_ARGS__) \
  SNNJAX_INSTANCE(Vertex, unsigned short, __VA_ARGS__)
// Every type that a tensor may have.
#define SNNJAX_INSTANCES_OF_ELEMENTS(Vertex, ...)                   \
  SNNJAX_INSTANCES_OF_NUMBERS(Vertex, __VA_ARGS__)                  \
  SNNJAX_INSTANCES(Vertex, short, unsigned short, __VA_ARGS__)      \
  SNNJAX_INSTANCES(Vertex, signed char, unsigned char, __VA_ARGS__) \
  SNNJAX_INSTANCES(Vertex, char, bool, __VA_ARGS__)

}  // namespace snnjax
