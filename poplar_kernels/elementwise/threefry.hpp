// Threefry-2x32 with 20 rounds: J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011, which gives the rotations and the order of the key words. JAX's default generator.
#pragma once

#include <cstdint>

namespace snnjax {

struct Words {
  std::uint32_t first, second;
};

constexpr Words threefry(Words key, Words counter) {
  constexpr std::uint32_t kParity = 0x1bd11bda;  // keeps the third key word from being 0
  constexpr unsigned kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const std::uint32_t keys[3] = {key.first, key.second, key.first ^ key.second ^ kParity};
  std::uint32_t x = counter.first + keys[0], y = counter.second + keys[1];
  for (unsigned group = 0; group < 5; ++group) {
    for (const unsigned rotation : kRotations[group % 2]) {
      x += y;
      y = (y << rotation | y >> (32 - rotation)) ^ x;
    }
    x += keys[(group + 1) % 3];
    y += keys[(group + 2) % 3] + group + 1;
  }
  return {x, y};
}

// The 32 bits that jax.random.bits gives for element `index` of an array (with jax_threefry_partitionable, its default:
// each element depends only on the key and its own index, so tiles need nothing from each other).
constexpr std::uint32_t randomBits(Words key, std::uint64_t index) {
  const Words words = threefry(key, {static_cast<std::uint32_t>(index >> 32), static_cast<std::uint32_t>(index)});
  return words.first ^ words.second;
}

}  // namespace snnjax
