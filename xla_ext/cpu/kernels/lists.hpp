// From lists of ids and values to the entries that count, and from membranes to the neurons that spike.
#pragma once

#include "../kernels.hpp"
#include "simd.hpp"

namespace snnjax::SNNJAX_ISA {

inline float valueOf(float x) { return x; }
inline float valueOf(std::uint16_t bits) { return __builtin_bit_cast(float, std::uint32_t{bits} << 16); }

inline Ints loadIds(const std::int32_t* from) {
  Ints x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}

inline Ints loadIds(const std::uint16_t* from) {
  Halves x;
  __builtin_memcpy(&x, from, sizeof x);
  return __builtin_convertvector(x, Ints);
}

// Which entries are used is as good as random, so nothing branches on it: what is not used is overwritten by the next.
template <typename Id, typename Value>
inline std::uint32_t listUsed(const Id* ids, const Value* values, Index count, std::uint32_t width,
                              std::uint32_t* out_ids, float* out_values, bool* all_ones) {
  std::uint32_t used = 0, others = 0;
  Index slot = 0;
#if defined(__AVX512F__)
  for (; slot + kLanes <= count; slot += kLanes) {
    const auto id = (__m512i)loadIds(ids + slot);
    const Floats value = load(values + slot);
    const Mask in_range = _mm512_cmplt_epu32_mask(id, _mm512_set1_epi32(static_cast<int>(width)));
    const auto mask = static_cast<Mask>(in_range & notEqual(value, Floats{}));
    if ((mask & (mask + 1)) == 0) {  // the first ones, as in a list with unused slots behind: they stay where they are
      _mm512_storeu_si512(out_ids + used, id);
      store(out_values + used, value);
    } else {
      _mm512_storeu_si512(out_ids + used, _mm512_maskz_compress_epi32(mask, id));
      _mm512_storeu_ps(out_values + used, _mm512_maskz_compress_ps(mask, (__m512)value));
    }
    others |= bitsOf(notEqual(value, splat(1.0F))) & mask;
    used += static_cast<std::uint32_t>(__builtin_popcount(mask));
  }
#endif
  for (; slot < count; ++slot) {
    const auto id = static_cast<std::uint32_t>(ids[slot]);  // a negative one is larger than any width
    const float value = valueOf(values[slot]);
    out_ids[used] = id;
    out_values[used] = value;
    const std::uint32_t counts = (id < width) & (value != 0.0F);
    used += counts;
    others |= counts & static_cast<std::uint32_t>(value != 1.0F);
  }
  *all_ones = others == 0;
  return used;
}

template <typename Id>
inline std::uint32_t listEntriesWith(const Id* ids, const EntryLists& from, Index first, std::uint32_t* out_ids,
                                     float* out_values, bool* all_ones) {
  const auto width = static_cast<std::uint32_t>(from.width < INT32_MAX ? from.width : INT32_MAX);
  if (from.values_are_bfloat16) {
    const auto* values = static_cast<const std::uint16_t*>(from.values) + first;
    return listUsed(ids + first, values, from.capacity, width, out_ids, out_values, all_ones);
  }
  const auto* values = static_cast<const float*>(from.values) + first;
  return listUsed(ids + first, values, from.capacity, width, out_ids, out_values, all_ones);
}

inline std::uint32_t listEntries(const EntryLists& from, Index row, std::uint32_t* ids, float* values, bool* all_ones) {
  const Index first = row * from.capacity;
  if (from.ids_are_uint16) {
    return listEntriesWith(static_cast<const std::uint16_t*>(from.ids), from, first, ids, values, all_ones);
  }
  return listEntriesWith(static_cast<const std::int32_t*>(from.ids), from, first, ids, values, all_ones);
}

inline void mark(const float* v, const float* threshold, const float* second_threshold, Index neurons,
                 std::uint64_t* spikes, std::uint64_t* near) {
  for (Index first = 0; first < neurons; first += 64) {
    std::uint64_t above = 0, reached = 0;
    const Index behind = first + 64 < neurons ? first + 64 : neurons;
    for (Index i = first; i < behind; i += kLanes) {
      const Index left = behind - i;
      const bool is_whole = left >= kLanes;
      // What is missing is 0 everywhere, which is not above itself.
      const Floats own = is_whole ? load(v + i) : loadPart(v + i, left);
      const Floats upper = is_whole ? load(threshold + i) : loadPart(threshold + i, left);
      const Floats lower = is_whole ? load(second_threshold + i) : loadPart(second_threshold + i, left);
      above |= static_cast<std::uint64_t>(bitsOf(greater(own, upper))) << (i - first);
      reached |= static_cast<std::uint64_t>(bitsOf(greater(own, lower))) << (i - first);
    }
    spikes[first / 64] = above;
    near[first / 64] = reached & ~above;
  }
}

}  // namespace snnjax::SNNJAX_ISA
