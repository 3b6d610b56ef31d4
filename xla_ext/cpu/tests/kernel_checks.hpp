// Shared by the tests of the kernels: for every instruction set of this machine, each kernel is compared with a plain
// loop over the same random arrays. What the loop does not write, such as the gap after a row, must stay as it was.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include "check.hpp"
#include "cpu/choose_kernels.hpp"

namespace kernel_checks {

using namespace snnjax;
using Floats = std::vector<float>;
using Words = std::vector<std::uint64_t>;

// Around the lanes of every set, its tiles of columns, and the words of bits.
inline const std::vector<Index> kSizes{0,  1,  3,  4,  5,  7,  8,   9,   15,  16,  17,
                                       31, 32, 33, 63, 64, 65, 100, 128, 130, 250, 277};

inline std::size_t sizeOf(Index count) { return static_cast<std::size_t>(count); }
inline Index wordsOf(Index bits) { return (bits + 63) / 64; }
inline Index roundUp(Index count, Index multiple) { return (count + multiple - 1) / multiple * multiple; }
inline bool isSet(const std::uint64_t* bits, Index i) { return (bits[i / 64] >> (i % 64) & 1) != 0; }

// Random numbers, the same in every run (the generator of Steele, Lea and Flood 2014, SplitMix64).
class Random {
 public:
  explicit Random(Index seed) : state_(static_cast<std::uint64_t>(seed)) {}

  std::uint64_t word() {
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }

  Index below(Index end) { return static_cast<Index>(word() % static_cast<std::uint64_t>(end)); }
  bool happens(double share) { return static_cast<double>(below(1000)) < share * 1000; }

  // Eighths in [-2, 2]. Some hundred products of two of them, and some of three, sum without rounding in any order,
  // with fused multiply-adds and without: whatever the instruction set, the sum is the same.
  float eighth() { return static_cast<float>(below(33) - 16) / 8.0F; }

  Floats eighths(Index count) {
    Floats made(sizeOf(count));
    for (float& x : made) x = eighth();
    return made;
  }

  Words words(Index count) {
    Words made(sizeOf(count));
    for (std::uint64_t& x : made) x = word();
    return made;
  }

  // Ids below `end`, ascending, each with a probability of `share`.
  std::vector<std::uint32_t> ids(Index end, double share) {
    std::vector<std::uint32_t> made;
    for (Index id = 0; id < end; ++id) {
      if (happens(share)) made.push_back(static_cast<std::uint32_t>(id));
    }
    return made;
  }

 private:
  std::uint64_t state_;
};

// A matrix of eighths, with a gap after each row.
struct Matrix {
  Index stride;
  Floats numbers;

  Matrix(Random& random, Index rows, Index columns, Index gap = 5)
      : stride(columns + gap), numbers(random.eighths(rows * stride)) {}

  Rows<float> toWrite() { return {numbers.data(), stride}; }
  Rows<const float> rows() const { return {numbers.data(), stride}; }
  float& at(Index r, Index c) { return numbers[sizeOf(r * stride + c)]; }
  float at(Index r, Index c) const { return numbers[sizeOf(r * stride + c)]; }
};

// What is tested, for messages.
struct Case {
  const Kernels& kernels;
  Index size;

  std::string text() const { return std::string(kernels.name) + " of size " + std::to_string(size); }
};

// Whether all of `got` is as near to `want` as `tolerance` times the larger of 1 and that; 0 means exact. All NaNs are
// equal, and so are both zeros.
template <typename T, typename U>
void expectNear(const Case& of, const std::vector<T>& got, const std::vector<U>& want, double tolerance,
                std::source_location at = std::source_location::current()) {
  bool same = got.size() == want.size();
  std::size_t i = 0;
  for (; same && i < got.size(); ++i) {
    const auto x = static_cast<double>(got[i]), y = static_cast<double>(want[i]);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    same = std::abs(x - y) <= tolerance * std::max(1.0, std::abs(y));
    if (!same) break;
  }
  if (same) return;
  const std::string numbers =
      got.size() == want.size() ? ": " + check::both(got[i], want[i]) + " at " + std::to_string(i) : ": other sizes";
  check::that(false, at.function_name(), at.file_name(), static_cast<int>(at.line()), of.text() + numbers);
}

template <typename T>
void expectSame(const Case& of, const std::vector<T>& got, const std::vector<T>& want,
                std::source_location at = std::source_location::current()) {
  if (got == want) return;  // words of bits are more than a double holds
  expectNear(of, got, want, 0.0, at);
}

inline void expect(const Case& of, bool holds, std::source_location at = std::source_location::current()) {
  if (!holds) check::that(false, at.function_name(), at.file_name(), static_cast<int>(at.line()), of.text());
}

// Calls test(kernels, size, random) for every instruction set of this machine and every size.
template <typename Test>
void forEachSet(Test test, const std::vector<Index>& sizes = kSizes) {
  for (const Kernels* kernels : kernelsOfMachine()) {
    for (const Index size : sizes) {
      Random random(size);
      test(Case{*kernels, size}, random);
    }
  }
}

}  // namespace kernel_checks
