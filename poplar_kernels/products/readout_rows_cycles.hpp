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

// The dot product, through the parts of a row: two pointers and the branch for each; its pairs: loads, and a branch
// where there are several; the last product, both lanes, the store. Where the neuron is kept besides, of a pair the
// load and store of its sum, and a pointer unless sums lie as far apart as weights. Products and sums find bundles,
// halves are widened beside their products.
constexpr Slots readoutDot(Slots parts, unsigned columns, unsigned width, bool is_kept) {
  const Slots pairs = numbersOf(columns), of_pair = (width < 4 ? 3 : 2) + (is_kept ? 2 : 0) + (pairs > 1 ? 1 : 0);
  return parts * (3 + (is_kept && width < 4 ? 1 : 0) + pairs * of_pair) + 4;
}

// Sums cleared by four pairs a turn, then number by number: where they are 6.
constexpr Slots clearedSums(Slots rows, unsigned columns) {
  const Slots numbers = rows * columns, in_turns = columns % 2 == 0 ? numbers / 8 * 8 : 0;
  return 6 + in_turns / 8 * 5 + (numbers - in_turns) * 2;
}

}  // namespace cycles

// A row: its addresses 4, zeros, the loop 2; a word: load, test, loop and its address 5; one that lists any: masks 7.
template <class W>
std::uint64_t workerCycles(const ReadoutGradient<W>& vertex, unsigned worker) {
  using namespace cycles;
  const auto dot = [&](bool is_kept) { return kMark + readoutDot(vertex.parts, vertex.columns, sizeof(W), is_kept); };
  Slots slots =
      entry(11, false) + 1 + (vertex.starts ? clearedSums(vertex.parts * vertex.readable, vertex.columns) : 0);
  for (unsigned row = worker; row < vertex.rows; row += vertex.numWorkers()) {
    slots += 6 + 2 * numbersOf(vertex.neurons);
    for (unsigned word = 0; word < markWords(vertex.neurons); ++word) {
      const unsigned mask = vertex.masks[word * vertex.rows + row];
      const unsigned kept = keptOf(mask, vertex.readable, word);
      slots += 5 + (mask != 0 ? 7 : 0);
      forEachMark(kept, [&](unsigned) { slots += dot(true); });
      forEachMark(listedOf(mask, vertex.readable, word) & ~kept, [&](unsigned) { slots += dot(false); });
    }
  }
  return slots;
}

}  // namespace snnjax
