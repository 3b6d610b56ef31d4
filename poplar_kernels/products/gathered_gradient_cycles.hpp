// What the codelets of gathered_gradient.cpp cost a worker: the spikes that there really are.
#pragma once

#include <bit>

#include "../lists/listed_rows.hpp"
#include "../lists/listed_rows_cycles.hpp"
#include "../lists/lists.hpp"

namespace snnjax::cycles {

inline Slots bitsOfMask(unsigned mask) { return static_cast<Slots>(std::popcount(mask)); }

inline MarkedRows markedRows(const Marks& marks) {
  MarkedRows rows;
  marks.forEachWord([&](unsigned, unsigned mask) {
    ++rows.words;
    rows.all += bitsOfMask(mask);
    rows.in_whole_words += mask == ~0U ? Marks::kBits : 0;
  });
  return rows;
}

}  // namespace snnjax::cycles
