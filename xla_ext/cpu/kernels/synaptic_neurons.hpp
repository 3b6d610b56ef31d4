// One time step of neurons with synaptic currents or conductances, and Poisson input; as in snnjax/ops/simulate.py.
#pragma once

#include "../kernels.hpp"
#include "simd.hpp"

namespace snnjax::SNNJAX_ISA {

// A vector of neurons, or the last ones, which do not fill it.
template <bool kWhole>
struct Lanes {
  Index count;

  Floats get(const float* from) const {
    if constexpr (kWhole) return load(from);
    return loadPart(from, count);
  }
  void put(float* to, Floats x) const {
    if constexpr (kWhole) return store(to, x);
    storePart(to, x, count);
  }
  std::uint32_t bits() const { return (std::uint32_t{1} << count) - 1; }
};

// The bits of the neurons that spike, of those from the n-th on.
template <bool kConductances, bool kWhole>
inline std::uint32_t stepNeurons(const SynapticStep& step, Index n, Lanes<kWhole> lanes) {
  const Floats before = lanes.get(step.v + n), leak = lanes.get(step.leak.at(n));
  Floats pull = lanes.get(step.drive.at(n)), total = splat(1.0F);
  if (step.currents.data != nullptr) pull += lanes.get(step.currents.at(n));
  if constexpr (!kConductances) pull += leak * before;
  for (Index r = 0; r < step.receptors; ++r) {
    float* const received = step.received + r * step.neurons + n;
    float* const arriving = step.arriving + r * step.neurons + n;
    const Floats g = lanes.get(received) + lanes.get(arriving);
    pull += lanes.get(step.effect[r].at(n)) * g;
    if constexpr (kConductances) total += g;
    lanes.put(received, lanes.get(step.synaptic_decay[r].at(n)) * g);
    lanes.put(arriving, Floats{});
  }
  Floats v = pull;
  if constexpr (kConductances) {
    const Floats target = pull / total, rate = leak * total;
    v = target + (before - target) * exponential(select(greater(rate, Floats{}), Floats{}, rate));
  }
  const Floats remaining = lanes.get(step.remaining + n);
  const Mask busy = greater(remaining, Floats{});
  v = select(busy, before, v);
  Floats left = select(busy, remaining - 1.0F, remaining);
  const std::uint32_t spikes = bitsOf(greater(v, lanes.get(step.threshold.at(n)))) & ~bitsOf(busy) & lanes.bits();
  if (spikes != 0) {
    const Mask spiked = maskOf(spikes);
    v = select(spiked, lanes.get(step.reset.at(n)), v);
    left = select(spiked, lanes.get(step.refractory.at(n)), left);
  }
  lanes.put(step.v + n, v);
  lanes.put(step.remaining + n, left);
  return spikes;
}

template <bool kConductances>
inline Index stepAll(const SynapticStep& step, std::uint32_t* spikes) {
  Index count = 0;
  const auto list = [&](Index n, std::uint32_t bits) {
    for (; bits != 0; bits &= bits - 1) spikes[count++] = static_cast<std::uint32_t>(n + __builtin_ctz(bits));
  };
  Index n = 0;
  for (; n + kLanes <= step.neurons; n += kLanes) list(n, stepNeurons<kConductances>(step, n, Lanes<true>{kLanes}));
  const Index left = step.neurons - n;
  if (left > 0) list(n, stepNeurons<kConductances>(step, n, Lanes<false>{left}));
  return count;
}

inline Index stepSynaptic(const SynapticStep& step, std::uint32_t* spikes) {
  return step.has_conductances ? stepAll<true>(step, spikes) : stepAll<false>(step, spikes);
}

inline Unsigned rotate(Unsigned x, int bits) { return (x << bits) | (x >> (32 - bits)); }

// Threefry-2x32 with 20 rounds (Salmon et al. 2011), as in JAX: two random words a lane for two counters.
inline void scramble(const std::uint32_t* key, Unsigned& x, Unsigned& y) {
  constexpr int kRounds = 4, kGroups = 5;
  constexpr int kRotations[2][kRounds] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  constexpr std::uint32_t kParity = 0x1BD11BDA;
  const std::uint32_t keys[3] = {key[0], key[1], key[0] ^ key[1] ^ kParity};
  x += keys[0];
  y += keys[1];
  SNNJAX_UNROLL
  for (int group = 0; group < kGroups; ++group) {
    SNNJAX_UNROLL
    for (int round = 0; round < kRounds; ++round) {
      x += y;
      y = rotate(y, kRotations[group % 2][round]) ^ x;
    }
    x += keys[(group + 1) % 3];
    y += keys[(group + 2) % 3] + static_cast<std::uint32_t>(group + 1);
  }
}

// Adds the counts that random words stand for: how many limits each of them reaches.
inline void addCounts(const PoissonStep& step, Index n, Index end, Unsigned words) {
  if (n >= end) return;
  const Ints drawn = (Ints)(words ^ 0x80000000U);
  Floats counts{};
  for (Index level = 0; level < step.levels; ++level) {
    const Mask reached = atLeast(drawn, load(step.limits[level].at(n)));
    if (bitsOf(reached) == 0) break;
    counts = select(reached, counts + 1.0F, counts);
  }
  float* const to = step.arriving + n;
  const Floats added = load(step.weights.at(n)) * counts;
  const Index left = end - n;
  if (left >= kLanes) return store(to, load(to) + added);
  storePart(to, loadPart(to, left) + added, left);
}

// Neurons i and half + i share counters: each gets one of the two words.
inline void addPoisson(const PoissonStep& step) {
  const Index half = (step.neurons + 1) / 2;
  for (Index n = 0; n < half; n += kLanes) {
    Unsigned first = (Unsigned)lanesOf(static_cast<std::int32_t>(n)), second = step.step - Unsigned{};
    scramble(step.key, first, second);
    addCounts(step, n, half, first);
    addCounts(step, half + n, step.neurons, second);
  }
}

}  // namespace snnjax::SNNJAX_ISA
