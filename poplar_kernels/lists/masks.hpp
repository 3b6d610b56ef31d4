// Masks of who is listed and who is kept (conventions.hpp).
#pragma once

#include <bit>

#include "../conventions.hpp"
#include "../workers.hpp"

namespace snnjax {

// Calls body(i) for the bits of a mask, where i counts from the highest.
template <class Body>
inline void forEachMark(unsigned mask, Body&& body) {
  while (mask != 0) {
    const auto i = static_cast<unsigned>(std::countl_zero(mask));
    mask ^= kFirstMark >> i;
    body(i);
  }
}

// The kept and the listed neurons of a word, of the first `count` neurons.
constexpr unsigned ofFirst(unsigned count, unsigned word) {
  const unsigned own = smaller(larger(count, word * kMarked) - word * kMarked, kMarked);
  return own == 0 ? 0 : ~0U << (32 - own);
}
constexpr unsigned keptOf(unsigned mask, unsigned count, unsigned word) { return mask & ofFirst(count, word); }
constexpr unsigned listedOf(unsigned mask, unsigned count, unsigned word) {
  return mask << kMarked & ofFirst(count, word);
}

}  // namespace snnjax
