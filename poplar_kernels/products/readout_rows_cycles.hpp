// What the codelet of readout_rows.cpp costs a worker: the neurons that are really listed.
#pragma once

#include "../issue_slots.hpp"
#include "../lists/masks.hpp"

namespace snnjax {

template <class W>
class ReadoutGradient;

namespace cycles {

// forEachMark: its number, the bit cleared 2, the branch; addresses of what it names 5.
constexpr Slots kMark = 4 + 5;

// Through the parts of a row: two pointers and the branch for each; its pairs: loads, the store of sums, and a branch
// where there are several. Products and sums find bundles, halves are widened beside their products.
constexpr Slots throughParts(Slots parts, unsigned columns, Slots of_pair) {
  const Slots pairs = numbersOf(columns);
  return parts * (3 + pairs * (of_pair + (pairs > 1 ? 1 : 0)));
}
// The dot product: the last product, both lanes, the store.
constexpr Slots readoutDot(Slots parts, unsigned columns, unsigned width) {
  return throughParts(parts, columns, width < 4 ? 3 : 2) + 4;
}

}  // namespace cycles

// A row: its addresses 4, zeros, the loop 2; a word: load, test, loop and its address 5; one that lists any: masks 6.
template <class W>
std::uint64_t workerCycles(const ReadoutGradient<W>& vertex, unsigned worker) {
  using namespace cycles;
  const Slots dot = kMark + readoutDot(vertex.parts, vertex.columns, sizeof(W)),
              sum = kMark + throughParts(vertex.parts, vertex.columns, 3);
  Slots slots = entry(10, false);
  for (unsigned row = worker; row < vertex.rows; row += vertex.numWorkers()) {
    slots += 6 + 2 * numbersOf(vertex.neurons);
    for (unsigned word = 0; word < markWords(vertex.neurons); ++word) {
      const unsigned mask = vertex.masks[word * vertex.rows + row];
      slots += 5 + (mask != 0 ? 6 : 0);
      forEachMark(listedOf(mask, vertex.readable, word), [&](unsigned) { slots += dot; });
      forEachMark(keptOf(mask, vertex.readable, word), [&](unsigned) { slots += sum; });
    }
  }
  return slots;
}

}  // namespace snnjax
