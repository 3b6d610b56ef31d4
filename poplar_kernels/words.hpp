// Rows copied and filled by whole words: a tile moves 64 bits at the cost of 8, and to store less than 32 it reads,
// merges and writes a word. `moved` and `filled` of issue_slots.hpp are what this costs.
#pragma once

#include <cstring>

namespace snnjax {

template <unsigned bytes, class T>
void moveWord(T* to, const T* from) {
  std::memcpy(__builtin_assume_aligned(to, bytes), __builtin_assume_aligned(from, bytes), bytes);
}

// Both pointers are aligned to `bytes`.
template <unsigned bytes, class T>
void copyWords(T* to, const T* from, unsigned count) {
  constexpr unsigned kEach = sizeof(T) < bytes ? bytes / sizeof(T) : 1;
  unsigned i = 0;
  for (; i + kEach <= count; i += kEach) moveWord<kEach * sizeof(T)>(to + i, from + i);
  for (; i < count; ++i) to[i] = from[i];
}

// Copies `count` elements between tables that begin at 64 bits, from where a row of `width` elements may begin or a
// 64-bit word of one that does.
template <class T>
void copyRows(T* to, const T* from, unsigned count, unsigned width) {
  if (width * sizeof(T) % 8 == 0) return copyWords<8>(to, from, count);
  if (width * sizeof(T) % 4 == 0) return copyWords<4>(to, from, count);
  for (unsigned i = 0; i < count; ++i) to[i] = from[i];
}

// `word` is full of the value; `to` is aligned to `bytes`.
template <unsigned bytes, class T>
void fillWords(T* to, const T* word, unsigned count) {
  constexpr unsigned kEach = sizeof(T) < bytes ? bytes / sizeof(T) : 1;
  unsigned i = 0;
  for (; i + kEach <= count; i += kEach) moveWord<kEach * sizeof(T)>(to + i, word);
  for (; i < count; ++i) to[i] = word[0];
}

// The same with one value for all elements.
template <class T>
void fillRows(T* to, T value, unsigned count, unsigned width) {
  alignas(8) T word[8 / sizeof(T)];
  for (T& each : word) each = value;
  if (width * sizeof(T) % 8 == 0) return fillWords<8>(to, word, count);
  if (width * sizeof(T) % 4 == 0) return fillWords<4>(to, word, count);
  for (unsigned i = 0; i < count; ++i) to[i] = value;
}

}  // namespace snnjax
