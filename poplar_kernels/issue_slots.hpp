// What the loops of our codelets cost a worker. The unit is the issue slot: one bundle of a worker, which gets a slot
// every sixth tile cycle.
//
// The rules, from ipu.md 3.3, 3.5 and 3.9 of the project's notes; nothing here was measured on hardware:
//   - a bundle holds one main instruction (integers, load, store, branch) and one aux instruction (floats); each takes
//     one slot, latencies are hidden by the other five workers;
//   - the vendor's compiler puts an aux instruction into the bundle of a neighbouring main one that it does not depend
//     on, a loop's branch included. So it packs into 4 slots the 5 instructions of tutorial 6's scalar dot product
//     (ld32, ld32, f32mul, f32add with brnzdec), as the hardware shows;
//   - it closes loops by brnzdec, 1 slot; hardware loops (rpt), dual loads and dual load-stores are left to assembly;
//   - a vector instruction on two floats costs what the scalar one on one float does; two halves are loaded by one
//     instruction and widened by another (aux);
//   - elements of 16 bits are loaded singly (ldz16) and stored by reading the word, merging and writing it: 4;
//   - the inverse of two floats takes 6, an exponential 6, a root or a quotient 10 (PopLibs' estimators);
//   - integers are divided in software: 40, assumed.
// Loops with other bounds, types or branches than the usual path are counted on the usual path.
#pragma once

#include <cstdint>

namespace snnjax::cycles {

using Slots = std::uint64_t;

constexpr Slots kInverse = 6, kExponential = 6, kRoot = 10, kQuotient = 10, kDivision = 40;
constexpr Slots kShortStore = 4;  // of 16 bits
// Calling compute(): the worker's number from its status register, the base of the fields, the end of the worker.
constexpr Slots kCall = 6;

constexpr Slots most(Slots a, Slots b) { return a > b ? a : b; }

// The store of one element of `bytes`.
constexpr Slots store(unsigned bytes) { return bytes < 4 ? kShortStore : 1; }

// Loads of the fields, and a worker's share: products for its rows, shareOf() with its division where it is used.
constexpr Slots entry(unsigned fields, bool divides) { return kCall + fields + (divides ? kDivision + 12 : 6); }

// Turns of the loops of words.hpp over rows of `width` elements: one for each 64 bits where all rows begin at 64 bits,
// each 32 where they begin at 32, else for each element. A copy takes load, store and branch, a filling store and
// branch; the way to the loop kToRows.
constexpr Slots kToRows = 4;
constexpr Slots turnsOf(Slots elements, unsigned bytes, Slots width) {
  const Slots word = width * bytes % 8 == 0 ? 8 : width * bytes % 4 == 0 ? 4 : bytes;
  return (elements * bytes + word - 1) / word;
}
constexpr bool areWords(unsigned bytes, Slots width) { return width * bytes % 4 == 0; }
constexpr Slots filled(Slots elements, unsigned bytes, Slots width) {
  return turnsOf(elements, bytes, width) * (1 + (areWords(bytes, width) ? 1 : store(bytes)));
}
constexpr Slots moved(Slots elements, unsigned bytes, Slots width) {
  return filled(elements, bytes, width) + turnsOf(elements, bytes, width);
}

// How often an equation is evaluated for `neurons` neurons: two at a time if their number is even.
constexpr Slots numbersOf(unsigned neurons) { return neurons % 2 == 0 ? neurons / 2 : neurons; }

}  // namespace snnjax::cycles
