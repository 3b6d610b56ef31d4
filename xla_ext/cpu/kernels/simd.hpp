// Vectors of float32 in the width of the instruction set that this translation unit is compiled for.
//
// Everything is in the instruction set's namespace, and nothing here instantiates a standard library template: the
// linker may merge equal templates of different translation units, and would then run AVX-512 code on machines without
// it.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

// Use before a loop over an array of vectors: they stay in registers only if the loop is unrolled early.
#define SNNJAX_UNROLL _Pragma("GCC unroll 16")

namespace snnjax::SNNJAX_ISA {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX2__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;  // SSE2 and NEON
#endif

using Floats = float __attribute__((vector_size(4 * kLanes)));
using Ints = std::int32_t __attribute__((vector_size(4 * kLanes)));
using Unsigned = std::uint32_t __attribute__((vector_size(4 * kLanes)));
using Halves = std::uint16_t __attribute__((vector_size(2 * kLanes)));

#if defined(__AVX512F__)
using Mask = __mmask16;
// For instructions whose forms without a mask GCC 12 takes to read what nobody has written.
inline constexpr Mask kAllLanes = 0xffff;
#else
using Mask = Ints;
#endif

inline Floats load(const float* from) {
  Floats x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}

inline Ints load(const std::int32_t* from) {
  Ints x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}

inline void store(float* to, Floats x) { __builtin_memcpy(to, &x, sizeof x); }

inline Floats splat(float x) { return x - Floats{}; }  // x - 0 is x, whatever its sign

inline Ints lanesOf(std::int32_t first) {
  Ints ids;
  for (int lane = 0; lane < kLanes; ++lane) ids[lane] = first + lane;
  return ids;
}

// Bfloat16 numbers, widened: they are the upper halves of float32.
inline Floats load(const std::uint16_t* from) {
#if defined(__ARM_NEON)
  return (Floats)vshll_n_u16(vld1_u16(from), 16);  // one instruction, where GCC 12 takes lane by lane
#else
  Halves x;
  __builtin_memcpy(&x, from, sizeof x);
  return (Floats)(__builtin_convertvector(x, Ints) << 16);
#endif
}

// Two bfloat16 numbers a lane, the first in its lower half.
inline Ints loadPairs(const std::uint16_t* from) {
  Ints x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}

// Numbers of two vectors: that of each lane comes from `place(lane)`, counted through both. `Counted` stands for
// std::integer_sequence, which belongs to the standard library.
template <int... kLane>
struct Counted {};
template <int kCount, int... kLane>
struct Count : Count<kCount - 1, kCount - 1, kLane...> {};
template <int... kLane>
struct Count<0, kLane...> {
  using Type = Counted<kLane...>;
};
template <typename Place, int... kLane>
inline Floats shuffled(Floats a, Floats b, Place, Counted<kLane...>) {
  return __builtin_shufflevector(a, b, Place{}(kLane)...);
}
template <typename Place>
inline Floats shuffled(Floats a, Floats b, Place place) {
  return shuffled(a, b, place, typename Count<kLanes>::Type{});
}

// Of 2 * kLanes numbers in two vectors, those at even and at odd places.
inline Floats evenLanes(Floats first, Floats second) {
  return shuffled(first, second, [](int lane) { return 2 * lane; });
}
inline Floats oddLanes(Floats first, Floats second) {
  return shuffled(first, second, [](int lane) { return 2 * lane + 1; });
}
// The converse: of numbers at even and odd places, the first and the second half.
inline Floats firstPairs(Floats even, Floats odd) {
  return shuffled(even, odd, [](int lane) { return lane / 2 + (lane & 1) * kLanes; });
}
inline Floats secondPairs(Floats even, Floats odd) {
  return shuffled(even, odd, [](int lane) { return (lane + kLanes) / 2 + (lane & 1) * kLanes; });
}

// The first `count` lanes from memory, 0 in the others; nothing behind them is touched.
inline Floats loadPart(const float* from, std::int64_t count) {
#if defined(__AVX512F__)
  return (Floats)_mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << count) - 1U), from);
#elif defined(__AVX2__)
  return (Floats)_mm256_maskload_ps(from, (__m256i)(lanesOf(0) < static_cast<std::int32_t>(count)));
#else
  Floats x{};
  SNNJAX_UNROLL
  for (int lane = 0; lane < kLanes; ++lane) {  // copying `count` numbers would be a call
    if (lane < count) x[lane] = from[lane];
  }
  return x;
#endif
}

// Whole numbers of 8 bits, as float32.
inline Floats load(const std::int8_t* from) {
#if defined(__AVX512F__)
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  const auto x = (Ints)_mm512_maskz_cvtepi8_epi32(kAllLanes, bytes);
#elif defined(__AVX2__)
  const auto x = (Ints)_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
#else
  Ints x{};
  for (int lane = 0; lane < kLanes; ++lane) x[lane] = from[lane];
#endif
  return __builtin_convertvector(x, Floats);
}

inline Floats loadPart(const std::int8_t* from, std::int64_t count) {
  Ints x{};
  for (int lane = 0; lane < static_cast<int>(count); ++lane) x[lane] = from[lane];
  return __builtin_convertvector(x, Floats);
}

inline Floats loadPart(const std::uint16_t* from, std::int64_t count) {
  Ints x{};
  for (int lane = 0; lane < static_cast<int>(count); ++lane) x[lane] = from[lane];
  return (Floats)(x << 16);
}

inline void storePart(float* to, Floats x, std::int64_t count) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1U << count) - 1U), (__m512)x);
#elif defined(__AVX2__)
  _mm256_maskstore_ps(to, (__m256i)(lanesOf(0) < static_cast<std::int32_t>(count)), (__m256)x);
#else
  SNNJAX_UNROLL
  for (int lane = 0; lane < kLanes; ++lane) {
    if (lane < count) to[lane] = x[lane];
  }
#endif
}

// Where numbers just loaded have several uses: GCC may load them for each again.
inline void keepLoaded([[maybe_unused]] Floats& x) {
#if defined(__x86_64__)
  asm("" : "+v"(x));
#endif
}

// Non-temporal stores to memory aligned to a vector; `finishStream` makes them visible to other threads.
inline void stream(float* to, Floats x) {
#if defined(__AVX512F__)
  _mm512_stream_ps(to, (__m512)x);
#elif defined(__AVX2__)
  _mm256_stream_ps(to, (__m256)x);
#else
  store(to, x);
#endif
}

inline void finishStream() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

#if defined(__AVX512F__)

inline Mask greater(Floats a, Floats b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ); }
inline Mask notEqual(Floats a, Floats b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_NEQ_UQ); }
inline Mask greater(Ints a, Ints b) { return _mm512_cmpgt_epi32_mask((__m512i)a, (__m512i)b); }
inline Floats select(Mask mask, Floats yes, Floats no) {
  return (Floats)_mm512_mask_blend_ps(mask, (__m512)no, (__m512)yes);
}
inline std::uint32_t bitsOf(Mask mask) { return mask; }
inline Mask maskOf(std::uint32_t bits) { return static_cast<Mask>(bits); }

#else

inline Mask greater(Floats a, Floats b) { return a > b; }
inline Mask notEqual(Floats a, Floats b) { return a != b; }
inline Mask greater(Ints a, Ints b) { return a > b; }
inline Floats select(Mask mask, Floats yes, Floats no) { return mask ? yes : no; }

inline std::uint32_t bitsOf(Mask mask) {
#if defined(__AVX2__)
  return static_cast<std::uint32_t>(_mm256_movemask_ps((__m256)mask));
#elif defined(__SSE2__)
  return static_cast<std::uint32_t>(_mm_movemask_ps((__m128)mask));
#elif defined(__ARM_NEON)
  return vaddvq_u32((uint32x4_t)(mask & Ints{1, 2, 4, 8}));
#else
  std::uint32_t bits = 0;
  for (int lane = 0; lane < kLanes; ++lane) bits |= (mask[lane] ? 1U : 0U) << lane;
  return bits;
#endif
}

inline Mask maskOf(std::uint32_t bits) {
  Ints lane_bit;
  for (int lane = 0; lane < kLanes; ++lane) lane_bit[lane] = 1 << lane;
  return (lane_bit & (static_cast<std::int32_t>(bits) - Ints{})) != 0;
}

#endif

inline Floats absolute(Floats x) { return (Floats)((Ints)x & 0x7fffffff); }
inline Floats maximum(Floats a, Floats b) { return select(greater(a, b), a, b); }

inline float sumOf(Floats x) {  // pairs, in a fixed order
#if defined(__AVX512F__)
  x += __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  x += __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
  x += __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
  x += __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
  return x[0];
#elif defined(__ARM_NEON)
  return vaddvq_f32((float32x4_t)x);
#else
  float parts[kLanes];
  store(parts, x);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) parts[lane] += parts[lane + half];
  }
  return parts[0];
#endif
}

// The nearest bfloat16 number, ties to even, as a float32.
inline Floats roundToBfloat16(Floats x) {
  const Ints bits = (Ints)x;
  const Ints rounded = (bits + 0x7fff + ((bits >> 16) & 1)) & static_cast<std::int32_t>(0xffff0000);
  return select(notEqual(x, x), x, (Floats)rounded);
}

// e^x for x <= 0: 2^n times a polynomial in the rest, after Cody and Waite 1980; the relative error is about 1e-7.
inline Floats exponential(Floats x) {
  constexpr float kLowest = -87.0F;  // below it the result is subnormal
  x = maximum(x, splat(kLowest));
  const Floats scaled = x * 1.44269504F;
  const Ints n = __builtin_convertvector(scaled - 0.5F, Ints);  // towards 0, thus to the nearest for x <= 0
  const Floats whole = __builtin_convertvector(n, Floats);
  const Floats r = (x - whole * 0.693359375F) + whole * 2.12194440e-4F;
  Floats p = splat(1.9875691500e-4F);
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  return p * (Floats)((n + 127) << 23);
}

// start + scale * sum, rounded once where there is an instruction for it: left to itself, GCC 12 takes it here and not
// there, and the bits of a column would depend on which vectors are summed with it.
inline Floats fused(Floats start, Floats scale, Floats sum) {
#if defined(__AVX512F__)
  return (Floats)_mm512_fmadd_ps((__m512)scale, (__m512)sum, (__m512)start);
#elif defined(__FMA__)
  return (Floats)_mm256_fmadd_ps((__m256)scale, (__m256)sum, (__m256)start);
#elif defined(__ARM_NEON)
  return (Floats)vfmaq_f32((float32x4_t)start, (float32x4_t)scale, (float32x4_t)sum);
#else
  return start + scale * sum;
#endif
}

}  // namespace snnjax::SNNJAX_ISA
