// Random numbers from a key and the element's index: independent of the mapping to tiles, and made from the same bits
// as JAX's. In [0, 1) they equal jax.random.uniform bit for bit; scaled ones round product and sum separately, where
// XLA may fuse them; the normal distribution is JAX's formula, up to a few roundings.
#include "random_cycles.hpp"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "fields.hpp"
#include "threefry.hpp"
#include "workers.hpp"

namespace snnjax {

namespace {

// A number in [0, 1): the high bits become a fraction beside the exponent of 1.
template <class T>
T fractionOf(std::uint32_t bits) {
  using Pattern = std::conditional_t<std::is_same_v<T, half>, std::uint16_t, std::uint32_t>;
  constexpr unsigned kFraction = std::is_same_v<T, half> ? 10 : 23;
  constexpr unsigned kOne = std::is_same_v<T, half> ? 0x3c00 : 0x3f800000;
  const Pattern pattern = static_cast<Pattern>(static_cast<Pattern>(bits) >> (8 * sizeof(T) - kFraction) | kOne);
  T number;
  std::memcpy(&number, &pattern, sizeof(number));
  return static_cast<T>(number - static_cast<T>(1));
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

// The inverse of the error function, by M. Giles, "Approximating the erfinv function" (GPU Computing Gems, 2012),
// single precision.
float inverseErrorFunction(float x) {
  constexpr float kNear[] = {2.81022636e-08f, 3.43273939e-07f, -3.5233877e-06f, -4.39150654e-06f, 0.00021858087f,
                             -0.00125372503f, -0.00417768164f, 0.246640727f,    1.50140941f};
  constexpr float kFar[] = {-0.000200214257f, 0.000100950558f, 0.00134934322f, -0.00367342844f, 0.00573950773f,
                            -0.0076224613f,   0.00943887047f,  1.00167406f,    2.83297682f};
  float w = -std::log1p(-x * x);
  const bool near = w < 5.0f;
  w = near ? w - 2.5f : std::sqrt(w) - 3.0f;
  float p = near ? kNear[0] : kFar[0];
  for (unsigned i = 1; i < 9; ++i) p = (near ? kNear[i] : kFar[i]) + p * w;
  return p * x;
}

template <class T>
constexpr unsigned kUnit = kPerWord<T>;

template <class V>
std::uint64_t numbersOf(const V& vertex, unsigned worker, unsigned unit) {
  const Range share = shareOf(vertex.count, worker, unit);
  return share.last - share.first;
}

}  // namespace

// out0, out1 = threefry2x32(key0, key1, in0, in1), element by element: the primitive of JAX.
class Threefry : public poplar::MultiVertex {
 public:
  In<unsigned> key0, key1;   // [count], or [1] if single_key
  In<unsigned> in0, in1;     // [count]
  Out<unsigned> out0, out1;  // [count]
  unsigned count;
  bool single_key;

  bool compute(unsigned worker) {
    const Range share = shareOf(count, worker);
    for (unsigned i = share.first; i < share.last; ++i) {
      const unsigned k = single_key ? 0 : i;
      const Words words = threefry({key0[k], key1[k]}, {in0[i], in1[i]});
      out0[i] = words.first;
      out1[i] = words.second;
    }
    return true;
  }
};

// What the codelets below share: elements [first, first + count) of an array, of which this tile holds these.
class RandomElements : public poplar::MultiVertex {
 public:
  In<unsigned> key;  // [2]
  unsigned count;
  unsigned first, first_high;  // low and high words of the first element's index

 protected:
  // Calls body(i, bits) for each of the worker's elements.
  template <class Body>
  void forEach(unsigned worker, unsigned unit, Body&& body) const {
    const Range share = shareOf(count, worker, unit);
    const std::uint64_t start = static_cast<std::uint64_t>(first_high) << 32 | first;
    for (unsigned i = share.first; i < share.last; ++i) body(i, randomBits({key[0], key[1]}, start + i));
  }
};

// out = bits
class RandomBits : public RandomElements {
 public:
  Out<unsigned> out;  // [count]

  bool compute(unsigned worker) {
    forEach(worker, 1, [this](unsigned i, std::uint32_t bits) { out[i] = bits; });
    return true;
  }
};

// out ~ U[low, high)
template <class T>
class RandomUniform : public RandomElements {
 public:
  Out<T> out;  // [count]
  T low, high;

  bool compute(unsigned worker) {
    forEach(worker, kUnit<T>, [this](unsigned i, std::uint32_t bits) { out[i] = uniformOf<T>(bits, low, high); });
    return true;
  }
};

// out = mean + deviation * sqrt(2) * erfinv(u), u ~ U[low, high): the normal distribution for low just above -1 and
// high 1, a truncated one for the error function of its limits divided by sqrt(2).
template <class T>
class RandomNormal : public RandomElements {
 public:
  Out<T> out;  // [count]
  float low, high, mean, deviation;

  bool compute(unsigned worker) {
    constexpr float kRootOfTwo = 1.41421356f;
    forEach(worker, kUnit<T>, [this](unsigned i, std::uint32_t bits) {
      const float uniform = uniformOf<float>(bits, low, high);
      out[i] = static_cast<T>(mean + deviation * (kRootOfTwo * inverseErrorFunction(uniform)));
    });
    return true;
  }
};

// out = 1 with the given probability, else 0
template <class T>
class RandomBernoulli : public RandomElements {
 public:
  Out<T> out;  // [count]
  float probability;

  bool compute(unsigned worker) {
    forEach(worker, kUnit<T>, [this](unsigned i, std::uint32_t bits) {
      out[i] = static_cast<T>(uniformOf<float>(bits, 0.0f, 1.0f) < probability);
    });
    return true;
  }
};

inline std::uint64_t workerCycles(const Threefry& vertex, unsigned worker) {
  return cycles::random(numbersOf(vertex, worker, 1), cycles::kLoadAndStorePair);
}

inline std::uint64_t workerCycles(const RandomBits& vertex, unsigned worker) {
  return cycles::random(numbersOf(vertex, worker, 1), cycles::kStoreBits);
}

template <class T>
std::uint64_t workerCycles(const RandomUniform<T>& vertex, unsigned worker) {
  return cycles::random(numbersOf(vertex, worker, kUnit<T>), cycles::kUniform);
}

template <class T>
std::uint64_t workerCycles(const RandomNormal<T>& vertex, unsigned worker) {
  return cycles::random(numbersOf(vertex, worker, kUnit<T>), cycles::kUniform + cycles::kInverseErrorFunction);
}

template <class T>
std::uint64_t workerCycles(const RandomBernoulli<T>& vertex, unsigned worker) {
  return cycles::random(numbersOf(vertex, worker, kUnit<T>), cycles::kUniform + cycles::kCompare);
}

template class RandomUniform<float>;
template class RandomUniform<half>;
template class RandomUniform<int>;
template class RandomUniform<unsigned>;
template class RandomNormal<float>;
template class RandomNormal<half>;
template class RandomBernoulli<float>;
template class RandomBernoulli<half>;
template class RandomBernoulli<int>;
template class RandomBernoulli<unsigned>;
template class RandomBernoulli<bool>;

}  // namespace snnjax
