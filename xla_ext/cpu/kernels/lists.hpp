// Lists of what is not 0: from dense rows, bits, and lists of ids and values; and the neurons that spike, as bits.
#pragma once

#include "../kernels.hpp"
#include "simd.hpp"

namespace snnjax::SNNJAX_ISA {

// The ids of the set bits of a word, `first` being that of the lowest; up to 64 + kListSlack elements are written.
inline std::uint32_t listWord(std::uint64_t word, std::uint32_t first, std::uint32_t* ids) {
  const auto count = static_cast<std::uint32_t>(__builtin_popcountll(word));
#if defined(__AVX512VBMI2__)
  // Branch-free: the bits are unpredictable, and a mispredicted branch costs more than all of this.
  using Bytes = std::uint8_t __attribute__((vector_size(64)));
  constexpr Bytes kPlaces{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                          22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
                          44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
  const auto places = (Bytes)_mm512_maskz_compress_epi8(word, (__m512i)kPlaces);
  const auto put = [&](std::uint32_t* to, __m128i sixteen) {
    const auto wide = (Ints)_mm512_maskz_cvtepu8_epi32(0xffff, sixteen) + static_cast<std::int32_t>(first);
    __builtin_memcpy(to, &wide, sizeof wide);
  };
  __m128i part[4];
  __builtin_memcpy(part, &places, sizeof places);
  put(ids, part[0]);
  if (count > 16) {
    SNNJAX_UNROLL
    for (int i = 1; i < 4; ++i) put(ids + 16 * i, part[i]);
  }
#else
  constexpr std::uint32_t kFew = 4;  // as many as are written without a branch
  for (std::uint32_t k = 0; k < kFew; ++k, word &= word - 1) {
    ids[k] = first + (word == 0 ? 0 : static_cast<std::uint32_t>(__builtin_ctzll(word)));
  }
  for (std::uint32_t k = kFew; word != 0; ++k, word &= word - 1) {
    ids[k] = first + static_cast<std::uint32_t>(__builtin_ctzll(word));
  }
#endif
  return count;
}

inline float valueOf(float x) { return x; }
inline float valueOf(std::uint16_t bits) { return __builtin_bit_cast(float, std::uint32_t{bits} << 16); }

// Which of up to 64 numbers are not 0, a bit each; `others` gets those that are not 1 either.
template <typename T>
inline std::uint64_t nonZero(const T* from, Index count, std::uint64_t* others) {
  std::uint64_t bits = 0;
  *others = 0;
  for (Index i = 0; i < count; i += kLanes) {
    const Index left = count - i;
    const Floats x = left >= kLanes ? load(from + i) : loadPart(from + i, left);
    bits |= static_cast<std::uint64_t>(bitsOf(notEqual(x, Floats{}))) << i;
    *others |= static_cast<std::uint64_t>(bitsOf(notEqual(x, splat(1.0F)))) << i;
  }
  *others &= bits;
  return bits;
}

template <typename T>
inline std::uint32_t listNonZero(const T* row, Index width, std::uint32_t* ids, float* values, bool* all_ones) {
  std::uint32_t count = 0;
  std::uint64_t others = 0;
  for (Index first = 0; first < width; first += 64) {
    const Index left = width - first;
    std::uint64_t own_others;
    const std::uint64_t bits =
        left >= 64 ? nonZero(row + first, 64, &own_others) : nonZero(row + first, left, &own_others);
    others |= own_others;
    count += listWord(bits, static_cast<std::uint32_t>(first), ids + count);
  }
  *all_ones = others == 0;
  for (std::uint32_t k = 0; others != 0 && k < count; ++k) values[k] = valueOf(row[ids[k]]);
  return count;
}

// Which of 64 bytes are not 0, a bit each.
inline std::uint64_t nonZeroBytes(const std::uint8_t* from) {
#if defined(__AVX512BW__)
  const __m512i bytes = _mm512_loadu_si512(from);
  return _mm512_test_epi8_mask(bytes, bytes);
#elif defined(__ARM_NEON)
  const uint8x16_t place = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201U));  // a bit for each byte of eight
  const auto marks = [&](const std::uint8_t* bytes) {
    const uint8x16_t own = vld1q_u8(bytes);
    return vandq_u8(vtstq_u8(own, own), place);
  };
  const uint8x16_t low = vpaddq_u8(marks(from), marks(from + 16)), high = vpaddq_u8(marks(from + 32), marks(from + 48));
  const uint8x16_t sums = vpaddq_u8(low, high);  // of four bytes each, and next of eight
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)), 0);
#elif defined(__SSE2__)
  std::uint64_t zero = 0;
  for (int i = 0; i < 64; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    const int marks = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_setzero_si128()));
    zero |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(marks)) << i;
  }
  return ~zero;
#else
  std::uint64_t bits = 0;
  for (int eight = 0; eight < 64; eight += 8) {
    std::uint64_t word;
    __builtin_memcpy(&word, from + eight, sizeof word);
    if (word == 0) continue;
    for (int i = 0; i < 8; ++i) bits |= static_cast<std::uint64_t>(from[eight + i] != 0) << (eight + i);
  }
  return bits;
#endif
}

inline std::uint32_t listNonZeroBytes(const std::uint8_t* row, Index width, std::uint32_t* ids, float* values,
                                      bool* all_ones) {
  std::uint32_t count = 0;
  Index first = 0;
  for (; first + 64 <= width; first += 64) {
    count += listWord(nonZeroBytes(row + first), static_cast<std::uint32_t>(first), ids + count);
  }
  std::uint64_t rest = 0;
  for (Index i = first; i < width; ++i) rest |= static_cast<std::uint64_t>(row[i] != 0) << (i - first);
  count += listWord(rest, static_cast<std::uint32_t>(first), ids + count);
  std::uint32_t others = 0;
  for (std::uint32_t k = 0; k < count; ++k) {
    others |= row[ids[k]] ^ 1U;
    values[k] = static_cast<float>(row[ids[k]]);
  }
  *all_ones = others == 0;
  return count;
}

inline std::uint32_t listBits(const std::uint64_t* bits, Index width, std::uint32_t* ids) {
  std::uint32_t count = 0;
  for (Index word = 0; word < (width + 63) / 64; ++word) {
    count += listWord(bits[word], static_cast<std::uint32_t>(word * 64), ids + count);
  }
  return count;
}

inline bool markOnes(const float* row, Index width, std::uint64_t* bits) {
  std::uint64_t others = 0;
  for (Index first = 0; first < width; first += 64) {
    std::uint64_t own_others;
    bits[first / 64] = nonZero(row + first, width - first < 64 ? width - first : 64, &own_others);
    others |= own_others;
  }
  return others == 0;
}

// Through bytes: a bit would be set in the word that the bit before it has just been written to.
inline bool markIds(const std::uint32_t* ids, std::uint32_t count, Index words, std::uint8_t* scratch,
                    std::uint64_t* bits) {
  if (words == 0) return true;  // no neurons, and perhaps no scratch
  __builtin_memset(scratch, 0, static_cast<std::size_t>(words * 64));
  for (std::uint32_t k = 0; k < count; ++k) scratch[ids[k]] = 1;
  std::uint32_t distinct = 0;
  for (Index word = 0; word < words; ++word) {
    bits[word] = nonZeroBytes(scratch + word * 64);
    distinct += static_cast<std::uint32_t>(__builtin_popcountll(bits[word]));
  }
  return distinct == count;
}

inline void expandBits(const std::uint64_t* bits, Index width, float* out) {
  for (Index first = 0; first < width; first += kLanes) {
    const auto own = static_cast<std::uint32_t>(bits[first / 64] >> (first % 64));
    const Floats x = select(maskOf(own), splat(1.0F), Floats{});
    const Index left = width - first;
    left >= kLanes ? store(out + first, x) : storePart(out + first, x, left);
  }
}

inline Index countMarks(const std::uint64_t* marks, Index words) {
  Index count = 0;
  for (Index word = 0; word < words; ++word) count += __builtin_popcountll(marks[word]);
  return count;
}

#if (defined(__AVX2__) && !defined(__AVX512F__)) || defined(__ARM_NEON)
// For the marks of a vector, which lane each lane takes its number from, a byte each.
struct LaneTable {
  std::uint64_t lanes[1U << kLanes];
};

// The marked lanes, side by side.
constexpr LaneTable markedLanes() {
  LaneTable table{};
  for (std::uint32_t marks = 0; marks < 1U << kLanes; ++marks) {
    int place = 0;
    for (std::uint64_t lane = 0; lane < kLanes; ++lane) {
      if ((marks >> lane & 1) != 0) table.lanes[marks] |= lane << (8 * place++);
    }
  }
  return table;
}

// For each lane, the number of marked ones before it.
constexpr LaneTable lanesBefore() {
  LaneTable table{};
  for (std::uint32_t marks = 0; marks < 1U << kLanes; ++marks) {
    std::uint64_t before = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
      table.lanes[marks] |= before << (8 * lane);
      before += marks >> lane & 1;
    }
  }
  return table;
}

inline Floats moveLanes(Floats x, const std::uint64_t& lanes) {
#if defined(__ARM_NEON)
  const uint32x4_t places = vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(lanes))));
  const uint32x4_t bytes = vmlaq_n_u32(vdupq_n_u32(0x03020100U), places, 0x04040404U);  // four of each number
  return (Floats)vqtbl1q_u8((uint8x16_t)x, vreinterpretq_u8_u32(bytes));
#else
  return (Floats)_mm256_permutevar8x32_ps(
      (__m256)x, _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(&lanes))));
#endif
}
#endif

// The marked lanes, side by side; a whole vector is written.
inline void putMarked(float* to, std::uint32_t marks, Floats x) {
#if defined(__AVX512F__)
  store(to, (Floats)_mm512_maskz_compress_ps(maskOf(marks), (__m512)x));
#elif defined(__AVX2__) || defined(__ARM_NEON)
  static constexpr LaneTable kMarked = markedLanes();
  store(to, moveLanes(x, kMarked.lanes[marks]));
#else
  for (int lane = 0; lane < kLanes; ++lane) {  // what is not marked is overwritten by the next
    *to = x[lane];
    to += marks >> lane & 1;
  }
#endif
}

// The first lanes, moved to the marked ones; 0 in the others.
inline Floats spreadMarked(std::uint32_t marks, Floats x) {
#if defined(__AVX512F__)
  return (Floats)_mm512_maskz_expand_ps(maskOf(marks), (__m512)x);
#elif defined(__AVX2__) || defined(__ARM_NEON)
  static constexpr LaneTable kBefore = lanesBefore();
  return select(maskOf(marks), moveLanes(x, kBefore.lanes[marks]), Floats{});
#else
  Floats out{};
  int next = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((marks >> lane & 1) != 0) out[lane] = x[next++];
  }
  return out;
#endif
}

// The marks of the lanes from `first` on.
inline std::uint32_t marksAt(const std::uint64_t* marks, Index first) {
  return static_cast<std::uint32_t>(marks[first / 64] >> (first % 64)) & ((1U << kLanes) - 1U);
}

inline void compressMarked(const std::uint64_t* marks, Index width, const float* from, float* out) {
  for (Index first = 0; first < width; first += kLanes) {
    const Index left = width - first;
    const std::uint32_t own = marksAt(marks, first);
    putMarked(out, own, left >= kLanes ? load(from + first) : loadPart(from + first, left));
    out += __builtin_popcount(own);
  }
}

// The next numbers, in the lanes whose bits are set; 0 in the others.
inline Floats takeMarked(MarkedNumbers& from, std::uint32_t own) {
  const Floats x = from.count >= kLanes ? load(from.numbers) : loadPart(from.numbers, from.count);
  const Index marked = __builtin_popcount(own), used = marked < from.count ? marked : from.count;
  from.numbers += used;
  from.count -= used;
  return spreadMarked(own, x);
}

inline void expandMarked(MarkedNumbers from, Index width, float* out) {
  for (Index first = 0; first < width; first += kLanes) {
    const Floats x = takeMarked(from, marksAt(from.marks, first));
    width - first >= kLanes ? store(out + first, x) : storePart(out + first, x, width - first);
  }
}

template <bool kAdds>
inline void expandBoth(MarkedNumbers spikes, MarkedNumbers listed, Index width, float* out) {
  for (Index first = 0; first < width; first += kLanes) {
    const std::uint32_t spiked = marksAt(spikes.marks, first), others = marksAt(listed.marks, first) & ~spiked;
    const Index left = width - first;
    Floats x = takeMarked(spikes, spiked) + takeMarked(listed, others);
    if constexpr (kAdds) x += left >= kLanes ? load(out + first) : loadPart(out + first, left);
    left >= kLanes ? store(out + first, x) : storePart(out + first, x, left);
  }
}

inline void expandList(MarkedNumbers spikes, MarkedNumbers listed, Index width, float* out) {
  expandBoth<false>(spikes, listed, width, out);
}

inline void addList(MarkedNumbers spikes, MarkedNumbers listed, Index width, float* out) {
  expandBoth<true>(spikes, listed, width, out);
}

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

// Which entries are used is unpredictable, so nothing branches on it: an unused one is overwritten by the next.
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
    if ((mask & (mask + 1)) == 0) {  // a prefix, as in a list with unused slots at the end: they stay in place
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
