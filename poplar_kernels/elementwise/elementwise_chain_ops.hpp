// The operations of elementwise_chain.cpp, and the encoding of a program.
//
// A program is a sequence of words. A word holds an operation and slots: bits 0 to 7 the operation, 8 to 13 the slot it
// writes, 14 to 19, 20 to 25 and 26 to 31 those it reads. Loads, stores and aims have the number of a row instead from
// bit 14 on, and a constant has its bits in the next word.
//
// Results are those of XLA on the CPU: integers wrap around, quotients by 0 have all bits set, remainders by 0 are the
// dividend, a NaN is passed on by maximum and minimum, for which +0 is more than -0, shifts by 32 or more shift all
// out, and what a conversion cannot hold becomes the nearest limit, a NaN 0.
#pragma once

#include <cmath>
#include <cstdint>
#include <poplar/Vertex.hpp>

#include "../numbers.hpp"
#include "cycles.hpp"

// OP(name, suffix, From, To, Work, expression of x). From and To are what slots hold: float, int or unsigned; bools are
// 0 or 1.
#define SNNJAX_CHAIN_UNARY(OP)                                                                        \
  OP(abs, f32, float, float, Simple, std::fabs(x))                                                    \
  OP(negate, f32, float, float, Simple, -x)                                                           \
  OP(sign, f32, float, float, Comparison, x > 0 ? 1.0f : (x < 0 ? -1.0f : x))                         \
  OP(square, f32, float, float, Simple, x* x)                                                         \
  OP(ceil, f32, float, float, Simple, std::ceil(x))                                                   \
  OP(floor, f32, float, float, Simple, std::floor(x))                                                 \
  OP(round_nearest_even, f32, float, float, Simple, std::nearbyint(x))                                \
  OP(round_nearest_afz, f32, float, float, Simple, std::round(x))                                     \
  OP(trunc, f32, float, float, Simple, std::trunc(x))                                                 \
  OP(rsqrt, f32, float, float, Root, 1.0f / std::sqrt(x))                                             \
  OP(sqrt, f32, float, float, Root, std::sqrt(x))                                                     \
  OP(cbrt, f32, float, float, Library, std::cbrt(x))                                                  \
  OP(exponential, f32, float, float, Exponential, std::exp(x))                                        \
  OP(exponential_minus_one, f32, float, float, Exponential, std::expm1(x))                            \
  OP(log, f32, float, float, Logarithm, std::log(x))                                                  \
  OP(log_plus_one, f32, float, float, Logarithm, std::log1p(x))                                       \
  OP(tanh, f32, float, float, Tangent, std::tanh(x))                                                  \
  OP(logistic, f32, float, float, Tangent, 1.0f / (1.0f + std::exp(-x)))                              \
  OP(sine, f32, float, float, Library, std::sin(x))                                                   \
  OP(cosine, f32, float, float, Library, std::cos(x))                                                 \
  OP(tan, f32, float, float, Library, std::tan(x))                                                    \
  OP(erf, f32, float, float, Library, std::erf(x))                                                    \
  OP(asin, f32, float, float, Library, std::asin(x))                                                  \
  OP(is_finite, f32, float, unsigned, Comparison, std::isfinite(x))                                   \
  OP(abs, s32, int, unsigned, Simple, x < 0 ? 0u - unsigned(x) : unsigned(x))                         \
  OP(negate, s32, unsigned, unsigned, Simple, 0u - x)                                                 \
  OP(negate, u32, unsigned, unsigned, Simple, 0u - x)                                                 \
  OP(sign, s32, int, int, Comparison, (x > 0) - (x < 0))                                              \
  OP(square, s32, unsigned, unsigned, Simple, x* x)                                                   \
  OP(not, bool, unsigned, unsigned, Simple, x ^ 1u)                                                   \
  OP(not, s32, unsigned, unsigned, Simple, ~x)                                                        \
  OP(not, u32, unsigned, unsigned, Simple, ~x)                                                        \
  OP(popcnt, u32, unsigned, unsigned, Simple, unsigned(__builtin_popcount(x)))                        \
  OP(count_leading_zeros, u32, unsigned, unsigned, Simple, x == 0 ? 32u : unsigned(__builtin_clz(x))) \
  OP(convert, f32_s32, float, int, Simple, toInteger<int>(x))                                         \
  OP(convert, f32_u32, float, unsigned, Simple, toInteger<unsigned>(x))                               \
  OP(convert, s32_f32, int, float, Simple, static_cast<float>(x))                                     \
  OP(convert, u32_f32, unsigned, float, Simple, static_cast<float>(x))                                \
  OP(convert, f32_bool, float, unsigned, Comparison, !(x == 0.0f))                                    \
  OP(convert, s32_bool, int, unsigned, Comparison, x != 0)                                            \
  OP(round, f16, float, float, Simple, chain::roundedToHalf(x))                                       \
  OP(round, bf16, float, float, Simple, chain::roundedToBfloat(x))                                    \
  OP(wrap, s8, unsigned, int, Simple, static_cast<std::int8_t>(x))                                    \
  OP(wrap, u8, unsigned, unsigned, Simple, x & 0xffu)                                                 \
  OP(wrap, s16, unsigned, int, Simple, static_cast<std::int16_t>(x))                                  \
  OP(wrap, u16, unsigned, unsigned, Simple, x & 0xffffu)

// OP(name, suffix, From, To, Work, expression of a and b)
#define SNNJAX_CHAIN_COMPARISONS(OP, suffix, From)   \
  OP(eq, suffix, From, unsigned, Comparison, a == b) \
  OP(ne, suffix, From, unsigned, Comparison, a != b) \
  OP(lt, suffix, From, unsigned, Comparison, a < b)  \
  OP(le, suffix, From, unsigned, Comparison, a <= b) \
  OP(gt, suffix, From, unsigned, Comparison, a > b)  \
  OP(ge, suffix, From, unsigned, Comparison, a >= b)
#define SNNJAX_CHAIN_BINARY(OP)                                                        \
  OP(add, f32, float, float, Simple, a + b)                                            \
  OP(subtract, f32, float, float, Simple, a - b)                                       \
  OP(multiply, f32, float, float, Simple, a* b)                                        \
  OP(divide, f32, float, float, Division, a / b)                                       \
  OP(remainder, f32, float, float, Library, std::fmod(a, b))                           \
  OP(maximum, f32, float, float, Simple, chain::maximum(a, b))                         \
  OP(minimum, f32, float, float, Simple, chain::minimum(a, b))                         \
  OP(power, f32, float, float, Power, std::pow(a, b))                                  \
  OP(atan2, f32, float, float, Library, std::atan2(a, b))                              \
  OP(add, s32, unsigned, unsigned, Simple, a + b)                                      \
  OP(subtract, s32, unsigned, unsigned, Simple, a - b)                                 \
  OP(multiply, s32, unsigned, unsigned, Simple, a* b)                                  \
  OP(divide, s32, int, int, Division, chain::quotient(a, b))                           \
  OP(remainder, s32, int, int, Division, chain::remainder(a, b))                       \
  OP(maximum, s32, int, int, Simple, a > b ? a : b)                                    \
  OP(minimum, s32, int, int, Simple, a < b ? a : b)                                    \
  OP(power, s32, int, int, Power, chain::power(a, b))                                  \
  OP(add, u32, unsigned, unsigned, Simple, a + b)                                      \
  OP(subtract, u32, unsigned, unsigned, Simple, a - b)                                 \
  OP(multiply, u32, unsigned, unsigned, Simple, a* b)                                  \
  OP(divide, u32, unsigned, unsigned, Division, b == 0 ? ~0u : a / b)                  \
  OP(remainder, u32, unsigned, unsigned, Division, b == 0 ? a : a % b)                 \
  OP(maximum, u32, unsigned, unsigned, Simple, a > b ? a : b)                          \
  OP(minimum, u32, unsigned, unsigned, Simple, a < b ? a : b)                          \
  OP(power, u32, unsigned, unsigned, Power, chain::powerOf(a, b))                      \
  OP(and, u32, unsigned, unsigned, Simple, a& b)                                       \
  OP(or, u32, unsigned, unsigned, Simple, a | b)                                       \
  OP(xor, u32, unsigned, unsigned, Simple, a ^ b)                                      \
  OP(shift_left, u32, unsigned, unsigned, Simple, b > 31 ? 0u : a << b)                \
  OP(shift_right_logical, u32, unsigned, unsigned, Simple, b > 31 ? 0u : a >> b)       \
  OP(shift_right_arithmetic, s32, int, int, Simple, a >> (unsigned(b) > 31 ? 31 : b))  \
  SNNJAX_CHAIN_COMPARISONS(OP, f32, float)                                             \
  SNNJAX_CHAIN_COMPARISONS(OP, s32, int)                                               \
  SNNJAX_CHAIN_COMPARISONS(OP, u32, unsigned)                                          \
  OP(eq_total, f32, int, unsigned, Comparison, a == b)                                 \
  OP(ne_total, f32, int, unsigned, Comparison, a != b)                                 \
  OP(lt_total, f32, int, unsigned, Comparison, chain::inOrder(a) < chain::inOrder(b))  \
  OP(le_total, f32, int, unsigned, Comparison, chain::inOrder(a) <= chain::inOrder(b)) \
  OP(gt_total, f32, int, unsigned, Comparison, chain::inOrder(a) > chain::inOrder(b))  \
  OP(ge_total, f32, int, unsigned, Comparison, chain::inOrder(a) >= chain::inOrder(b))

// OP(type, Element): what rows hold, loaded into slots and stored from them. Words are f32, s32 and u32 alike.
#define SNNJAX_CHAIN_NARROW(OP)  \
  OP(s16, halves, std::int16_t)  \
  OP(u16, halves, std::uint16_t) \
  OP(s8, bytes, std::int8_t)     \
  OP(u8, bytes, std::uint8_t)

namespace snnjax::chain {

constexpr unsigned kBlock = 128;    // elements of a slot
constexpr unsigned kMaxSlots = 24;  // 12 KiB of the stack

enum class Opcode : unsigned char {
  nothing,
  constant,    // slot; the next word
  load_word,   // slot, row: the slot aliases the row
  aim,         // slot, output row: what is written to the slot next goes to the row, and stays there
  store_word,  // slot, row
  load_f16,
  store_f16,
  load_bf16,
  store_bf16,
#define SNNJAX_CHAIN_OPCODE(type, rows, Element) load_##type, store_##type,
  SNNJAX_CHAIN_NARROW(SNNJAX_CHAIN_OPCODE)
#undef SNNJAX_CHAIN_OPCODE
#define SNNJAX_CHAIN_OPCODE(name, suffix, From, To, work, expression) name##_##suffix,
      SNNJAX_CHAIN_UNARY(SNNJAX_CHAIN_OPCODE) SNNJAX_CHAIN_BINARY(SNNJAX_CHAIN_OPCODE)
#undef SNNJAX_CHAIN_OPCODE
          select,  // slot, condition, if true, if false
};

// Of a load: the row is one of the outputs, which are overwritten; it has one element, which is broadcast.
constexpr unsigned kOwnRow = 1u << 16, kSingleRow = 1u << 17;

struct Instruction {
  Opcode opcode;
  unsigned to, a, b, c;  // slots

  unsigned row() const { return a | b << 6 | c << 12; }
  unsigned word() const { return unsigned(opcode) | to << 8 | a << 14 | b << 20 | c << 26; }
};

constexpr unsigned wordOfRow(Opcode opcode, unsigned slot, unsigned row) {
  return unsigned(opcode) | slot << 8 | row << 14;
}
constexpr Instruction decoded(unsigned word) {
  return {static_cast<Opcode>(word & 0xff), word >> 8 & 63, word >> 14 & 63, word >> 20 & 63, word >> 26 & 63};
}

inline float roundedToHalf(float x) { return static_cast<float>(static_cast<half>(x)); }

// The upper 16 bits, to nearest, ties to even; a NaN stays one.
inline unsigned bfloatBits(float x) {
  const unsigned bits = bitsOf<unsigned>(x);
  const unsigned rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return x == x ? rounded : (bits >> 16 | 0x40u);
}
inline float floatOfBfloat(unsigned bits) { return bitsOf<float>(bits << 16); }
inline float roundedToBfloat(float x) { return floatOfBfloat(bfloatBits(x)); }

// Equal numbers have equal bits, except zeros: +0 is the larger.
inline float maximum(float a, float b) {
  const float equal = bitsOf<float>(bitsOf<unsigned>(a) & bitsOf<unsigned>(b));
  return a > b || a != a ? a : (a == b ? equal : b);
}
inline float minimum(float a, float b) {
  const float equal = bitsOf<float>(bitsOf<unsigned>(a) | bitsOf<unsigned>(b));
  return a < b || a != a ? a : (a == b ? equal : b);
}

inline int quotient(int a, int b) {
  if (b == 0) return -1;
  return b == -1 ? static_cast<int>(0u - unsigned(a)) : a / b;
}
inline int remainder(int a, int b) {
  if (b == 0) return a;
  return b == -1 ? 0 : a % b;
}

inline unsigned powerOf(unsigned base, unsigned exponent) {
  unsigned result = 1;
  for (; exponent != 0; exponent >>= 1, base *= base) result *= (exponent & 1u) != 0 ? base : 1u;
  return result;
}
// With a negative exponent only 1 and -1 give an integer other than 0.
inline int power(int base, int exponent) {
  if (exponent >= 0) return static_cast<int>(powerOf(unsigned(base), unsigned(exponent)));
  if (base == 1) return 1;
  return base == -1 ? ((exponent & 1) != 0 ? -1 : 1) : 0;
}

// Bits of floats as integers in the same order: NaN, infinity, numbers, -0, +0, numbers, infinity, NaN.
inline int inOrder(int bits) { return bits ^ static_cast<int>(unsigned(bits >> 31) >> 1); }

// The operations as functions of one element: exponential_f32(x), add_s32(a, b).
namespace functions {

#define SNNJAX_CHAIN_FUNCTION(name, suffix, From, To, work, expression) \
  inline constexpr auto name##_##suffix = [](From x) { return static_cast<To>(expression); };
SNNJAX_CHAIN_UNARY(SNNJAX_CHAIN_FUNCTION)
#undef SNNJAX_CHAIN_FUNCTION
#define SNNJAX_CHAIN_FUNCTION(name, suffix, From, To, work, expression) \
  inline constexpr auto name##_##suffix = [](From a, From b) { return static_cast<To>(expression); };
SNNJAX_CHAIN_BINARY(SNNJAX_CHAIN_FUNCTION)
#undef SNNJAX_CHAIN_FUNCTION

}  // namespace functions

}  // namespace snnjax::chain
