// half: 16-bit IEEE floating point, as codelets know it.
//
// On the IPU `half` is a built-in type of the compiler, in no namespace. The host's counterpart follows the same rules:
// each operation of two halves rounds to half, and a half with a float gives a float. What overflows becomes an
// infinity; the tile's control register that may ask for the largest number or a NaN instead is not modelled.
#pragma once

#ifndef __IPU__
#include <limits>

using half = _Float16;

#if !defined(__STDCPP_FLOAT16_T__)  // C++23 has these limits
template <>
class std::numeric_limits<half> {
 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr bool is_iec559 = true;
  static constexpr int radix = 2;
  static constexpr int digits = 11;
  static constexpr int digits10 = 3;
  static constexpr int max_digits10 = 5;
  static constexpr int min_exponent = -13;
  static constexpr int max_exponent = 16;
  static constexpr half min() noexcept { return static_cast<half>(1.0f / (1 << 14)); }
  static constexpr half max() noexcept { return static_cast<half>(65504.0f); }
  static constexpr half lowest() noexcept { return static_cast<half>(-65504.0f); }
  static constexpr half epsilon() noexcept { return static_cast<half>(1.0f / (1 << 10)); }
  static constexpr half denorm_min() noexcept { return static_cast<half>(1.0f / (1 << 24)); }
  static constexpr half infinity() noexcept { return static_cast<half>(__builtin_inff()); }
  static constexpr half quiet_NaN() noexcept { return static_cast<half>(__builtin_nanf("")); }
};
#endif
#endif

namespace poplar {
#ifndef __IPU__
using ::half;
#endif
}  // namespace poplar
