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

// A constant in a loop over neurons; where all are shared it is in a register.
template <bool kShared>
struct Constant {
  const float* data = nullptr;
  Index used = 0;  // the bits of the number of a neuron that count
  Floats value{};

  Constant() = default;
  explicit Constant(NeuronConstant<float> from) : data(from.data), used(from.is_shared ? 0 : -1) {
    if constexpr (kShared) value = load(data);
  }

  template <bool kWhole>
  Floats get(Index n, Lanes<kWhole> lanes) const {
    if constexpr (kShared) return value;
    return lanes.get(data + (n & used));
  }
};

// A loop over neurons keeps this in registers, and would load what the step points to again behind each store.
template <bool kConductances, bool kShared, int kReceptors>
struct Stepper {
  Constant<kShared> leak, threshold, reset, refractory, decay[kReceptors], effect[kReceptors];
  Constant<false> currents;
  float *v, *remaining, *received, *arriving;
  Index first, end, stride;

  explicit Stepper(const SynapticStep& step)
      : leak(step.leak),
        threshold(step.threshold),
        reset(step.reset),
        refractory(step.refractory),
        currents(step.currents),
        v(step.v),
        remaining(step.remaining),
        received(step.received),
        arriving(step.arriving),
        first(step.first),
        end(step.end),
        stride(step.stride) {
    SNNJAX_UNROLL
    for (int r = 0; r < kReceptors; ++r) {
      decay[r] = Constant<kShared>(step.synaptic_decay[r]);
      effect[r] = Constant<kShared>(step.effect[r]);
    }
  }

  // The membranes after a step, of neurons that are free.
  template <bool kWhole>
  [[gnu::always_inline]] Floats integrate(Index n, Lanes<kWhole> lanes, Floats before) const {
    Floats pull{}, total = splat(1.0F);
    const Floats leaks = leak.get(n, lanes);
    if (currents.data != nullptr) pull += currents.get(n, lanes);
    if constexpr (!kConductances) pull += leaks * before;
    SNNJAX_UNROLL
    for (int r = 0; r < kReceptors; ++r) {
      const Index place = r * stride + n;
      const Floats g = lanes.get(received + place) + lanes.get(arriving + place);
      pull += effect[r].get(n, lanes) * g;
      if constexpr (kConductances) total += g;
      lanes.put(received + place, decay[r].get(n, lanes) * g);
      lanes.put(arriving + place, Floats{});
    }
    if constexpr (!kConductances) return pull;
    const Floats target = pull / total, rate = leaks * total;
    return target + (before - target) * exponential(select(greater(rate, Floats{}), Floats{}, rate));
  }

  // The bits of those that spike, of the neurons from the n-th on.
  template <bool kWhole>
  [[gnu::always_inline]] std::uint32_t run(Index n, Lanes<kWhole> lanes) const {
    const Floats before = lanes.get(v + n), period = lanes.get(remaining + n);
    const Mask busy = greater(period, Floats{});
    Floats after = select(busy, before, integrate(n, lanes, before));
    Floats left = select(busy, period - 1.0F, period);
    const std::uint32_t spikes = bitsOf(greater(after, threshold.get(n, lanes))) & ~bitsOf(busy) & lanes.bits();
    if (spikes != 0) {
      const Mask spiked = maskOf(spikes);
      after = select(spiked, reset.get(n, lanes), after);
      left = select(spiked, refractory.get(n, lanes), left);
    }
    lanes.put(v + n, after);
    lanes.put(remaining + n, left);
    return spikes;
  }
};

template <bool kConductances, bool kShared, int kReceptors>
inline Index stepAll(const SynapticStep& step, std::uint32_t* spikes) {
  const Stepper<kConductances, kShared, kReceptors> stepper(step);
  Index count = 0;
  const auto list = [&](Index n, std::uint32_t bits) {
    for (; bits != 0; bits &= bits - 1) spikes[count++] = static_cast<std::uint32_t>(n + __builtin_ctz(bits));
  };
  Index n = stepper.first;
  for (; n + kLanes <= stepper.end; n += kLanes) list(n, stepper.run(n, Lanes<true>{kLanes}));
  const Index left = stepper.end - n;
  if (left > 0) list(n, stepper.run(n, Lanes<false>{left}));
  return count;
}

template <bool kConductances, bool kShared>
inline Index stepReceptors(const SynapticStep& step, std::uint32_t* spikes) {
  switch (step.receptors) {
    case 1: return stepAll<kConductances, kShared, 1>(step, spikes);
    case 2: return stepAll<kConductances, kShared, 2>(step, spikes);
    case 3: return stepAll<kConductances, kShared, 3>(step, spikes);
    default: return stepAll<kConductances, kShared, kMostReceptors>(step, spikes);
  }
}

inline bool sharesConstants(const SynapticStep& step) {
  bool shared = step.leak.is_shared && step.threshold.is_shared && step.reset.is_shared && step.refractory.is_shared;
  for (Index r = 0; r < step.receptors; ++r) {
    shared = shared && step.synaptic_decay[r].is_shared && step.effect[r].is_shared;
  }
  return shared;
}

inline Index stepSynaptic(const SynapticStep& step, std::uint32_t* spikes) {
  const bool shares = sharesConstants(step);
  if (step.has_conductances)
    return shares ? stepReceptors<true, true>(step, spikes) : stepReceptors<true, false>(step, spikes);
  return shares ? stepReceptors<false, true>(step, spikes) : stepReceptors<false, false>(step, spikes);
}

// A random word for each neuron: a bijective hash of its number (triple32 of Wellons 2018, "Prospecting for hash
// functions", with the second word of the key before its second multiplication), whose bits are all but unbiased.
inline Unsigned randomWords(const RandomStep& step, Index n) {
  constexpr std::uint32_t kGolden = 0x9e3779b9;  // so that neighbours differ in all bits
  const Unsigned numbers = (Unsigned)lanesOf(static_cast<std::int32_t>(n)) * step.blocks + step.number;
  Unsigned x = numbers * kGolden + step.key[0];
  x = (x ^ (x >> 17)) * 0xed5ad4bbU;
  x ^= step.key[1];
  x = (x ^ (x >> 11)) * 0xac4c1b51U;
  x = (x ^ (x >> 15)) * 0x31848babU;
  return x ^ (x >> 14);
}

// to[n] += x in the lanes of neurons before `end`.
inline void addTo(float* to, Floats x, Index n, Index end) {
  const Index left = end - n;
  if (left >= kLanes) return store(to + n, load(to + n) + x);
  storePart(to + n, loadPart(to + n, left) + x, left);
}

// Adds the counts that random words stand for: how many limits each of them exceeds.
inline void addPoisson(const PoissonStep& step) {
  const Index end = step.random.end;
  for (Index n = step.random.first; n < end; n += kLanes) {
    const Ints drawn = (Ints)(randomWords(step.random, n) ^ 0x80000000U);
    Floats counts{};
    for (Index level = 0; level < step.levels; ++level) {
      const Mask beyond = greater(drawn, load(step.limits[level].at(n)));
      if (bitsOf(beyond) == 0) break;
      counts = select(beyond, counts + 1.0F, counts);
    }
    addTo(step.arriving, load(step.weights.at(n)) * counts, n, end);
  }
}

// The bits of a word are counted in pairs, in fours and in bytes, whose sum a product has in its highest byte.
inline void addNoise(const NoiseStep& step) {
  constexpr std::int32_t kHalf = 16;
  const Index end = step.random.end;
  for (Index n = step.random.first; n < end; n += kLanes) {
    Unsigned x = randomWords(step.random, n);
    x -= (x >> 1) & 0x55555555U;
    x = (x & 0x33333333U) + ((x >> 2) & 0x33333333U);
    x = ((x + (x >> 4)) & 0x0f0f0f0fU) * 0x01010101U;
    const Floats beyond = __builtin_convertvector((Ints)(x >> 24) - kHalf, Floats);
    addTo(step.currents, load(step.scale.at(n)) * beyond, n, end);
  }
}

}  // namespace snnjax::SNNJAX_ISA
