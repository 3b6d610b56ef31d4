// Random words by counters, as in snnjax/ops/_random.py: whoever draws, and in which order, the words are the same.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace snnjax {

using Words = std::array<std::uint32_t, 2>;

// Threefry-2x32 with 20 rounds (Salmon et al. 2011), as in JAX.
inline Words threefry(Words key, std::uint32_t x, std::uint32_t y) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const std::uint32_t keys[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA};
  x += keys[0];
  y += keys[1];
  for (std::uint32_t group = 0; group < 5; ++group) {
    for (const int bits : kRotations[group % 2]) {
      x += y;
      y = std::rotl(y, bits) ^ x;
    }
    x += keys[(group + 1) % 3];
    y += keys[(group + 2) % 3] + group + 1;
  }
  return {x, y};
}

// A bijective hash whose bits are all but unbiased: triple32 (Wellons 2018, "Prospecting for hash functions"), with the
// second word of a key before its second multiplication.
inline std::uint32_t hashed(std::uint32_t counter, Words key) {
  std::uint32_t x = counter * 0x9e3779b9U + key[0];
  x = ((x ^ (x >> 17)) * 0xed5ad4bbU) ^ key[1];
  x = (x ^ (x >> 11)) * 0xac4c1b51U;
  x = (x ^ (x >> 15)) * 0x31848babU;
  return x ^ (x >> 14);
}

// A place in a random permutation of `count` numbers: a Feistel network of four rounds over the next power of four,
// again and again until it is within.
inline std::uint32_t permuted(std::uint32_t place, std::uint32_t count, Words key) {
  const int half = (std::bit_width(count - 1) + 1) / 2;
  const std::uint32_t mask = (1U << half) - 1;
  do {
    std::uint32_t left = place >> half, right = place & mask;
    for (std::uint32_t round = 0; round < 4; ++round) {
      const std::uint32_t next = left ^ (hashed(right + (round << 16), key) & mask);
      left = right, right = next;
    }
    place = left << half | right;
  } while (place >= count);
  return place;
}

}  // namespace snnjax
