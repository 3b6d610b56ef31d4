// Masks of who is listed and who is kept (conventions.hpp).
#pragma once

#include <bit>

#include "../conventions.hpp"
#include "../workers.hpp"

namespace snnjax {

// The first bit of a mask, counted from the highest, which it loses.
inline unsigned takeFirstMark(unsigned& mask) {
  const auto i = static_cast<unsigned>(std::countl_zero(mask));
  mask ^= kFirstMark >> i;
  return i;
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
