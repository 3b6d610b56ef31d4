// Arrays of float32 or bfloat16 that are read and written as float32.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>

#include "kernels.hpp"

namespace snnjax {

inline float fromBfloat16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

// The nearest bfloat16 number, ties to even.
inline std::uint16_t toBfloat16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (std::isnan(x)) return static_cast<std::uint16_t>((bits >> 16) | 0x40);  // stays a NaN without its lower half
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// An array of operands or results; `data` is nullptr where there is none.
struct Numbers {
  void* data = nullptr;
  bool is_bfloat16 = false;

  explicit operator bool() const { return data != nullptr; }

  const float* float32() const { return static_cast<const float*>(data); }

  void read(Index first, Index count, float* out) const {
    if (!is_bfloat16) {
      if (count > 0) std::memcpy(out, float32() + first, static_cast<std::size_t>(count) * sizeof(float));
      return;
    }
    const auto* from = static_cast<const std::uint16_t*>(data) + first;
    for (Index i = 0; i < count; ++i) out[i] = fromBfloat16(from[i]);
  }

  void write(Index first, Index count, const float* from) const {
    if (!is_bfloat16) {
      if (count > 0) {
        std::memcpy(static_cast<float*>(data) + first, from, static_cast<std::size_t>(count) * sizeof(float));
      }
      return;
    }
    auto* out = static_cast<std::uint16_t*>(data) + first;
    for (Index i = 0; i < count; ++i) out[i] = toBfloat16(from[i]);
  }

  // The array of the same kind that begins `count` elements further on.
  Numbers from(Index count) const {
    if (data == nullptr) return *this;
    return {static_cast<char*>(data) + count * (is_bfloat16 ? 2 : 4), is_bfloat16};
  }
};

}  // namespace snnjax
