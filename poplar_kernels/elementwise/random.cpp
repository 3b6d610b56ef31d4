// Random numbers from a key and the element's index: independent of the mapping to tiles, and made from the same bits
// as JAX's. In [0, 1) they equal jax.random.uniform bit for bit; scaled ones round product and sum separately, where
// XLA may fuse them.

#include "../numbers.hpp"
#include "../vertex.hpp"
#include "cycles.hpp"
#include "threefry.hpp"

namespace snnjax {

// A number in [0, 1): the high bits become a fraction beside the exponent of 1.
template <class T>
T fractionOf(std::uint32_t bits) {
  using Pattern = std::conditional_t<std::is_same_v<T, half>, std::uint16_t, std::uint32_t>;
  constexpr unsigned kFraction = std::is_same_v<T, half> ? 10 : 23;
  constexpr unsigned kOne = std::is_same_v<T, half> ? 0x3c00 : 0x3f800000;
  const Pattern pattern = static_cast<Pattern>(static_cast<Pattern>(bits) >> (8 * sizeof(T) - kFraction) | kOne);
  return static_cast<T>(bitsOf<T>(pattern) - static_cast<T>(1));
}

// One of the numbers from `low` to below `high`.
template <class T>
T uniformOf(std::uint32_t bits, T low, T high) {
  if constexpr (std::is_integral_v<T>) {
    const std::uint64_t span = static_cast<std::uint32_t>(high) - static_cast<std::uint32_t>(low);
    return static_cast<T>(static_cast<std::uint32_t>(low) + static_cast<std::uint32_t>(bits * span >> 32));
  } else {
    const T scaled = static_cast<T>(fractionOf<T>(bits) * static_cast<T>(high - low));
    const T number = static_cast<T>(scaled + low);
    return number > low ? number : low;
  }
}

// out0, out1 = threefry2x32(key0, key1, in0, in1), element by element: the primitive of JAX.
class Threefry : public poplar::MultiVertex {
 public:
  In<unsigned> key0, key1;   // [count], or [1] if single_key
  In<unsigned> in0, in1;     // [count]
  Out<unsigned> out0, out1;  // [count]
  unsigned count;
  bool single_key;

  void compute(unsigned worker) {
    for (const unsigned i : shareOf(count, worker)) {
      const unsigned k = single_key ? 0 : i;
      const Words words = threefry({key0[k], key1[k]}, {in0[i], in1[i]});
      out0[i] = words.first;
      out1[i] = words.second;
    }
  }
};

// out ~ U[low, high): elements [first, first + count) of an array, of which this tile holds these.
template <class T>
class RandomUniform : public poplar::MultiVertex {
 public:
  In<unsigned> key;  // [2]
  Out<T> out;        // [count]
  unsigned count;
  unsigned first, first_high;  // low and high words of the first element's index
  T low, high;

  void compute(unsigned worker) {
    const std::uint64_t start = static_cast<std::uint64_t>(first_high) << 32 | first;
    for (const unsigned i : shareOf(count, worker, kPerWord<T>)) {
      out[i] = uniformOf<T>(randomBits({key[0], key[1]}, start + i), low, high);
    }
  }
};

inline std::uint64_t workerCycles(const Threefry& vertex, unsigned worker) {
  return cycles::random(shareOf(vertex.count, worker).count(), cycles::kLoadAndStorePair);
}

template <class T>
std::uint64_t workerCycles(const RandomUniform<T>& vertex, unsigned worker) {
  return cycles::random(shareOf(vertex.count, worker, kPerWord<T>).count(), cycles::kUniform);
}

SNNJAX_INSTANCES_OF_FLOATS(RandomUniform)
template class RandomUniform<int>;

}  // namespace snnjax
