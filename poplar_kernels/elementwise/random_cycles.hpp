// What the codelets of random.cpp cost a worker, in issue slots.
//
// Threefry: 20 rounds of a sum, two shifts, an `or` and an `xor` (the tile has no rotation of a word): 5; two sums with
// the key before them, and three after each 4 rounds: 2 + 5 * 3. The integer pipeline does all of it, nothing beside
// it. Then what is made of the bits; all counted: pairs take 3 loads, 2 stores and the loop 2; a uniform
// number shift, `or`, difference, product, sum, comparison and choice, store and loop 10.
#pragma once

#include <cstdint>

namespace snnjax::cycles {

constexpr std::uint64_t kRandomPrologue = 40;  // fields, key, first index and share of the worker: counted
constexpr std::uint64_t kThreefry = 20 * 5 + 2 + 5 * 3;
constexpr std::uint64_t kLoadAndStorePair = 3 + 2 + 2;
constexpr std::uint64_t kUniform = 10;

constexpr std::uint64_t random(std::uint64_t numbers, std::uint64_t each) {
  return kRandomPrologue + numbers * (kThreefry + each);
}

}  // namespace snnjax::cycles
