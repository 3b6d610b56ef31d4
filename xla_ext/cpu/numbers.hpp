// Arrays of float32 or bfloat16 that are read and written as float32.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "kernels.hpp"

namespace snnjax {

inline float fromBfloat16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

// The nearest bfloat16 number, ties to even.
inline std::uint16_t toBfloat16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (std::isnan(x)) return static_cast<std::uint16_t>((bits >> 16) | 0x40);  // stays a NaN without its lower half
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// By the bits and without a branch for each, so that compilers make vectors of it.
inline bool areFinite(const float* numbers, Index count) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  std::uint32_t others = 0;
  for (Index i = 0; i < count; ++i) {
    others |= static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(numbers[i]) & kExponent) == kExponent);
  }
  return others == 0;
}

// An operand array, which is read-only, or a result array; `data` is nullptr where there is none.
template <typename Void>
struct BasicNumbers {
  static constexpr bool kIsWritable = !std::is_const_v<Void>;
  using Float = std::conditional_t<kIsWritable, float, const float>;
  using Bfloat16 = std::conditional_t<kIsWritable, std::uint16_t, const std::uint16_t>;

  Void* data = nullptr;
  bool is_bfloat16 = false;

  explicit operator bool() const { return data != nullptr; }
  operator BasicNumbers<const void>() const
    requires kIsWritable
  {
    return {data, is_bfloat16};
  }

  Float* float32() const { return static_cast<Float*>(data); }
  Bfloat16* bfloat16() const { return static_cast<Bfloat16*>(data); }

  void read(Index first, Index count, float* out) const {
    if (!is_bfloat16) {
      if (count > 0) std::memcpy(out, float32() + first, static_cast<std::size_t>(count) * sizeof(float));
      return;
    }
    for (Index i = 0; i < count; ++i) out[i] = fromBfloat16(bfloat16()[first + i]);
  }

  void write(Index first, Index count, const float* from) const
    requires kIsWritable
  {
    if (!is_bfloat16) {
      if (count > 0) std::memcpy(float32() + first, from, static_cast<std::size_t>(count) * sizeof(float));
      return;
    }
    for (Index i = 0; i < count; ++i) bfloat16()[first + i] = toBfloat16(from[i]);
  }

  void fill(Index first, Index count, float value) const
    requires kIsWritable
  {
    if (is_bfloat16) {
      std::fill_n(bfloat16() + first, count, toBfloat16(value));
    } else {
      std::fill_n(float32() + first, count, value);
    }
  }

  // The array of the same kind that begins `count` elements further on.
  BasicNumbers from(Index count) const {
    if (data == nullptr) return *this;
    if (is_bfloat16) return {bfloat16() + count, true};
    return {float32() + count, false};
  }
};
using Numbers = BasicNumbers<const void>;
using WritableNumbers = BasicNumbers<void>;

}  // namespace snnjax
