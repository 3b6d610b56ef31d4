// Neurons in the integers of a chip: sums of rows of int8, and a time step; as in snnjax/fixed_point/_step.py.
//
// Rows are whole vectors. Neurons behind the last one keep their state of 0 and are not written.
#pragma once

#include "../kernels.hpp"
#include "simd.hpp"

namespace snnjax::SNNJAX_ISA {

inline Ints splat(std::int32_t x) { return x - Ints{}; }
inline void store(std::int32_t* to, Ints x) { __builtin_memcpy(to, &x, sizeof x); }
inline Ints clipped(Ints x, std::int32_t low, std::int32_t high) {
  x = x < low ? splat(low) : x;
  return x > high ? splat(high) : x;
}
inline bool any(Ints mask) { return bitsOf(greater(Ints{}, mask)) != 0; }

inline Ints loadInt8s(const std::int8_t* from) {
#if defined(__AVX512F__)
  return (Ints)_mm512_maskz_cvtepi8_epi32(kAllLanes, _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#elif defined(__AVX2__)
  return (Ints)_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
#else
  Ints x{};
  for (int lane = 0; lane < kLanes; ++lane) x[lane] = from[lane];
  return x;
#endif
}

// Float32 that holds a whole number; what does not, such as NaN, is 0.
inline std::uint32_t wholeNumber(float x) {
  constexpr float kMost = 1 << 24;
  return x >= -kMost && x <= kMost ? static_cast<std::uint32_t>(static_cast<std::int32_t>(x)) : 0;
}

template <bool kSaturates, int kVectors>
inline void addToVectors(const SpikeRow& spikes, const IntegerSums& add, Index column, std::int32_t* sums) {
  Ints held[kVectors];
  SNNJAX_UNROLL
  for (int i = 0; i < kVectors; ++i) held[i] = load(sums + column + i * kLanes);
  for (std::uint32_t k = 0; k < spikes.count; ++k) {
    const std::int8_t* const row = add.weights.row(spikes.ids[k]) + column;
    const std::uint32_t count = spikes.values == nullptr ? 1 : wholeNumber(spikes.values[k]);
    const Ints factor = splat(static_cast<std::int32_t>(count << add.shift));
    SNNJAX_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      held[i] += factor * loadInt8s(row + i * kLanes);
      if constexpr (kSaturates) held[i] = clipped(held[i], add.low, add.high);
    }
  }
  SNNJAX_UNROLL
  for (int i = 0; i < kVectors; ++i) store(sums + column + i * kLanes, held[i]);
}

// As many vectors at once as stay in registers.
template <bool kSaturates, int kVectors = 8>
inline void addToRow(const SpikeRow& spikes, const IntegerSums& add, Index column, std::int32_t* sums) {
  for (; column + kVectors * kLanes <= add.columns; column += kVectors * kLanes) {
    addToVectors<kSaturates, kVectors>(spikes, add, column, sums);
  }
  if constexpr (kVectors > 1) {
    if (column < add.columns) addToRow<kSaturates, kVectors - 1>(spikes, add, column, sums);
  }
}

// Whether sums may come to a bound on the way. Where none does, the order of the rows makes no difference.
inline bool mayReach(const SpikeRow& spikes, const IntegerSums& add, const std::int32_t* sums) {
  constexpr std::int64_t kMostWeight = 128;
  std::int64_t count = spikes.count;
  for (std::uint32_t k = 0; spikes.values != nullptr && k < spikes.count; ++k) {
    const auto own = static_cast<std::int32_t>(wholeNumber(spikes.values[k]));
    count += own < 0 ? -own : own;
  }
  if (count > add.high) return true;
  const std::int64_t way = (count * kMostWeight) << add.shift;
  if (way > add.high) return true;
  const auto room = add.high - static_cast<std::int32_t>(way);
  Ints beyond{};
  for (Index c = 0; c < add.columns; c += kLanes) {
    const Ints held = load(sums + c);
    beyond |= (held > room) | (held < -room);
  }
  return any(beyond);
}

inline void addIntegers(const SpikeRow& spikes, const IntegerSums& add, std::int32_t* sums) {
  const bool saturates = add.saturates && mayReach(spikes, add, sums);
  saturates ? addToRow<true>(spikes, add, 0, sums) : addToRow<false>(spikes, add, 0, sums);
}

inline void addWhole(const float* from, Index columns, std::int32_t* sums) {
  for (Index c = 0; c < columns; ++c) {
    sums[c] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[c]) + wholeNumber(from[c]));
  }
}

// What a decay leaves of a state: by a shift, or by what it keeps over 2^decay_bits.
[[gnu::always_inline]] inline Ints decayed(const IntegerArithmetic& chip, Ints x, Ints decay) {
  Ints magnitude = x;
  if (chip.to_zero) magnitude = x < 0 ? -x : x;
  if (chip.shifts) {
    Ints lost = magnitude >> decay;
    if (chip.to_zero) lost = x < 0 ? -lost : lost;
    if (chip.at_least_one) lost = ((x > 0) & (lost == 0)) ? splat(1) : lost;
    return x - lost;
  }
  // The product in two parts, which int32 holds for 24 bits of x and 12 of the decay.
  const std::int32_t below = (1 << chip.decay_bits) - 1;
  const Ints left = (magnitude >> chip.decay_bits) * decay + (((magnitude & below) * decay) >> chip.decay_bits);
  if (chip.to_zero) return x < 0 ? -left : left;
  return left;
}

// Currents within their bounds; a sum of two is beyond them once at most.
[[gnu::always_inline]] inline Ints overflowed(const IntegerArithmetic& chip, Ints x) {
  const std::int32_t top = chip.high + 1;
  if (chip.saturates) return clipped(x, chip.low, chip.high);
  if (!chip.wraps) return x;
  if (chip.low == -top) return ((x + top) & (2 * top - 1)) - top;
  x = x > top ? x - 2 * top : x <= -top ? x + 2 * top : x;
  return x;
}

// How many spikes a membrane beyond its threshold sends: in float32 the quotient of whole numbers below 2^24 has the
// floor of the true one.
[[gnu::always_inline]] inline Ints timesBeyond(const IntegerArithmetic& chip, Ints v, Ints threshold) {
  const Floats divisor = __builtin_convertvector(clipped(threshold, 1, INT32_MAX), Floats);
  const Floats times = __builtin_convertvector(v, Floats) / divisor, most = splat(static_cast<float>(chip.max_spikes));
  const Floats least = maximum(times, splat(1.0F));
  return __builtin_convertvector(select(greater(least, most), most, least), Ints);
}

[[gnu::always_inline]] inline Ints membrane(const IntegerArithmetic& chip, Ints v, Ints decay, Ints total, Ints bias) {
  const Ints kept = decayed(chip, v, decay);
  if (chip.change_first) {
    Ints leak = kept - v;
    leak = v - kept == chip.low ? splat(chip.low) : leak;  // the negative of the least number is itself
    const Ints change = clipped(clipped(total + leak, chip.low, chip.high) + bias, chip.low, chip.high);
    return clipped(v + change, chip.low, chip.high);
  }
  v = kept + total + bias;
  return chip.bounded_last ? v : clipped(v, chip.low, chip.high);
}

// Whole numbers as float32, of which a row has `left` more.
inline void write(float* to, Ints x, Index left) {
  const Floats numbers = __builtin_convertvector(x, Floats);
  left < kLanes ? storePart(to, numbers, left) : store(to, numbers);
}

// A copy of the step stays in registers, where what it points to would be read again behind each store.
inline bool stepIntegers(const IntegerStep& given) {
  const IntegerStep step = given;
  const IntegerArithmetic chip = step.chip;
  Ints fired{};
  for (Index c = 0; c < step.neurons; c += kLanes) {
    const Index left = step.neurons - c;
    Ints total{};
    for (Index k = 0; k < step.synapses; ++k) {
      const Index place = k * step.stride + c;
      const Ints decay = load(step.synapse_decay + place);
      Ints current = load(step.current + place);
      if (chip.each_source) {
        current = decayed(chip, current, decay);
      } else {
        const Ints arriving = load(step.arriving + place) << chip.input_shift;
        store(step.arriving + place, Ints{});
        current = chip.input_first ? decayed(chip, overflowed(chip, current + arriving), decay)
                                   : overflowed(chip, decayed(chip, current, decay) + arriving);
      }
      store(step.current + place, current);
      if (step.record_current.data != nullptr) write(step.record_current.row(k) + c, current, left);
      total += current;
    }
    Ints v = membrane(chip, load(step.v + c), load(step.decay + c), total, load(step.bias + c));
    const Ints threshold = load(step.threshold + c);
    const Ints fires = chip.inclusive ? v >= threshold : v > threshold;
    Ints spikes = fires & 1;
    // Few send several spikes, so that this branch is foreseen, unlike one on whether any neuron fires.
    if (chip.max_spikes > 1 && any(fires & (v - threshold >= threshold))) {
      spikes = fires & timesBeyond(chip, v, threshold);
    }
    v = chip.subtracts ? v - spikes * threshold : v & ~fires;
    store(step.counts + c, load(step.counts + c) + spikes);
    fired |= fires;
    if (chip.bounded_last) v = clipped(v, chip.low, chip.high);
    store(step.v + c, v);
    write(step.spikes + c, spikes, left);
    if (step.record_v != nullptr) write(step.record_v + c, v, left);
  }
  return any(fired);
}

}  // namespace snnjax::SNNJAX_ISA
