// What the codelets of elementwise/ cost a worker, in issue slots.
#pragma once

#include "../issue_slots.hpp"

namespace snnjax {

// Kinds of arithmetic that cost the same.
enum class Work { Simple, Exponential, Root, Logarithm, Tangent, Division, Power, Comparison, Library };
enum class Kind { Float, Integer };

namespace cycles {

// Slots of a chain for two floats, or for one integer. A 64-bit vector as in PopLibs' estimators (ipu.md 3.5): simple
// operations 1; exponential 6, square root 10, logarithm, tanh and sigmoid 12, division 10, power 312; comparisons 14
// for 4 floats, 22 for 4 integers. Not in the table, and assumed here: functions of a software library (sine, error
// function, ...) at 60 an element, twice what a polynomial of degree 12 takes with its reduction.
constexpr Slots arithmetic(Work work, Kind kind) {
  constexpr Slots kTwoLibraryElements = 2 * 60;
  const bool integer = kind == Kind::Integer;
  switch (work) {
    case Work::Simple: return integer ? 2 : 1;
    case Work::Exponential: return kExponential;
    case Work::Root: return kRoot;
    case Work::Logarithm:
    case Work::Tangent: return 12;
    case Work::Division: return integer ? 30 : kQuotient;  // integers: a division in software, assumed
    case Work::Power: return integer ? 156 : 312;
    case Work::Comparison: return integer ? 6 : 7;
    case Work::Library: break;
  }
  return kTwoLibraryElements;
}

// A chain costs what code generated from its program does, also where the codelets of elementwise_chain.cpp interpret
// it; the executor counts the bundles of its loop (xla_ext/elementwise/chain_cost.cpp says by which rules), which takes
// four elements at a time, and two together of what remains. `rows` are the slots that get pointers and constants into
// registers. Around: the call; the count and the tables of rows; the worker's share, whose divisor is a constant; which
// loops run.
constexpr Slots chain(Slots elements, Slots rows, Slots four, Slots two, Slots one) {
  constexpr Slots kPrologue = kCall + 3 + 14 + 4;
  return kPrologue + rows + elements / 4 * four + elements % 4 / 2 * two + elements % 2 * one;
}

// Threefry: 20 rounds of a sum, two shifts, an `or` and an `xor` (the tile has no rotation of a word): 5; two sums with
// the key before them, and three after each 4 rounds: 2 + 5 * 3. The integer pipeline does all of it, nothing beside
// it. Then what is made of the bits; all counted: pairs take 3 loads, 2 stores and the loop 2; a uniform number shift,
// `or`, difference, product, sum, comparison and choice, store and loop 10. Fields, key, first index and share of the
// worker: 40.
constexpr Slots kThreefry = 20 * 5 + 2 + 5 * 3, kLoadAndStorePair = 3 + 2 + 2, kUniform = 10;

constexpr Slots random(Slots numbers, Slots each) {
  constexpr Slots kPrologue = 40;
  return kPrologue + numbers * (kThreefry + each);
}

// Cast. Float to half and back: four elements a turn, two loads and two stores of pairs (64 or 32 bits), a conversion
// beside each of two of them, the branch: 5. PopLibs' Cast1D takes 19 around its loop (ipu.md 3.5). Up to three that
// are left over, and all others, go one by one: load, conversion (an integer to a float and back 1; to and from a
// Boolean a comparison; limits 2), store, branch: 5 in the mean; elements smaller than a word are stored by reading,
// merging and writing it: 4 more.
constexpr Slots kCastPrologue = 19;
constexpr Slots cast(Slots elements, bool real_to_real, unsigned per_word) {
  constexpr Slots kVector = 4, kVectorLoop = 5, kElement = 5, kMerge = 4;
  const Slots turns = real_to_real ? elements / kVector : 0, rest = elements - turns * kVector;
  return kCastPrologue + turns * kVectorLoop + rest * (kElement + (per_word > 1 ? kMerge : 0));
}

}  // namespace cycles
}  // namespace snnjax
