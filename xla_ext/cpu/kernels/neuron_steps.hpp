// All time steps of neurons at once, vector by vector: what the steps share stays in registers.
#pragma once

#include "neuron.hpp"

namespace snnjax::SNNJAX_ISA {

// What the steps of a vector of neurons share.
struct VectorConstants {
  Floats decay, gain, threshold;

  VectorConstants(const NeuronConstants& from, Index at)
      : decay(load(from.decay + at)), gain(load(from.gain + at)), threshold(load(from.threshold + at)) {}
};

// The membranes after a step of `All`, from those before it.
template <Reset kReset, typename All>
[[gnu::always_inline]] inline Floats membraneAfter(const All& all, const VectorConstants& own, Index step, Index at,
                                                   Floats before) {
  const float* given = all.current.row(step) + at;
  __builtin_prefetch(given + all.next);
  const Floats current = scaledCurrent(load(given), all.factor, all.term, at);
  return steppedMembrane(own.decay, reset<kReset>(before, own.threshold), own.gain, current);
}

// The bits of a word of neurons in each step.
struct WordOfSteps {
  std::uint64_t spikes[kMostStepsAtOnce], near[kMostStepsAtOnce];
};

template <Reset kReset, bool kNear>
inline void stepThroughAll(const StepsForward& all, Index at, WordOfSteps* bits) {
  const VectorConstants own(all.constants, at);
  const Floats second_threshold = kNear ? load(all.constants.second_threshold + at) : Floats{};
  Floats v = load(all.state + at), count{};
  for (Index step = 0; step < all.end; ++step) {
    v = membraneAfter<kReset>(all, own, step, at, v);
    const Mask spiked = greater(v, own.threshold);
    bits->spikes[step] |= static_cast<std::uint64_t>(bitsOf(spiked)) << (at % 64);
    if constexpr (kNear) {
      bits->near[step] |= static_cast<std::uint64_t>(bitsOf(greater(v, second_threshold))) << (at % 64);
    }
    if (all.v.data != nullptr) store(all.v.row(step) + at, v);
    count = select(spiked, count + 1.0F, count);
  }
  store(all.state + at, v);
  if (all.counts != nullptr) addTo(all.counts + at, count);
}

template <Reset kReset, bool kNear>
inline void stepsForwardWith(const StepsForward& all) {
  for (Index first = 0; first < all.columns; first += 64) {
    const Index end = first + 64 < all.columns ? first + 64 : all.columns;
    WordOfSteps bits;
    for (Index step = 0; step < all.steps; ++step) bits.spikes[step] = bits.near[step] = 0;
    for (Index at = first; at < end; at += kLanes) stepThroughAll<kReset, kNear>(all, at, &bits);
    for (Index step = 0; step < all.steps; ++step) {
      all.spikes.row(step)[first / 64] = bits.spikes[step];
      if constexpr (kNear) all.near.row(step)[first / 64] = bits.near[step] & ~bits.spikes[step];
    }
  }
}

template <bool kNear>
inline void stepsForwardBy(const StepsForward& all) {
  switch (all.reset) {
    case Reset::Subtract: return stepsForwardWith<Reset::Subtract, kNear>(all);
    case Reset::Zero: return stepsForwardWith<Reset::Zero, kNear>(all);
    case Reset::None: return stepsForwardWith<Reset::None, kNear>(all);
  }
}

inline void stepsForward(const StepsForward& all) {
  all.near.data == nullptr ? stepsForwardBy<false>(all) : stepsForwardBy<true>(all);
}

// The cotangents of a vector of membranes from those of the spikes and of the membranes behind the reset.
template <Surrogate kKind, Reset kReset>
[[gnu::always_inline]] inline Floats cotangentBefore(const StepsBackward& all, const VectorConstants& own, Index step,
                                                     Index at, Floats v, Floats g_u) {
  Floats g_s = load(all.g_spikes.row(step) + at), g_threshold;
  if (all.listed.data != nullptr) {
    const std::uint64_t word = all.listed.row(step)[at / 64] >> (at % 64);
    g_s = select(maskOf(static_cast<std::uint32_t>(word)), g_s, Floats{});
  }
  if (all.g_counts != nullptr) {
    const Mask reached = greater(v, load(all.constants.second_threshold + at));
    g_s += select(reached, load(all.g_counts + at), Floats{});
  }
  const ResetForm form{kReset, all.detach_reset, all.surrogate};
  Floats g_v = throughReset<kKind>(form, g_u, v, own.threshold, &g_threshold);
  g_v += throughSpike<kKind>(g_s, v - own.threshold, all.surrogate);
  return all.g_last != nullptr && step + 1 == all.end ? g_v + load(all.g_last + at) : g_v;
}

// From the first step to the last, and back.
template <Surrogate kKind, Reset kReset>
inline void stepBackThroughAll(const StepsBackward& all, Index at) {
  const VectorConstants own(all.constants, at);
  Floats v[kMostStepsAtOnce], before = all.first_v == nullptr ? Floats{} : load(all.first_v + at);
  for (Index step = 0; step < all.end; ++step) before = v[step] = membraneAfter<kReset>(all, own, step, at, before);
  const Floats scale = load(all.scale + at);
  Floats g_u{}, sum{}, sum_given{};
  for (Index step = all.end; step-- > 0;) {
    const Floats g_v = cotangentBefore<kKind, kReset>(all, own, step, at, v[step], g_u);
    g_u = own.decay * g_v;
    sum += g_v;
    if (all.sum_given != nullptr) sum_given += g_v * load(all.current.row(step) + at);
    stream(all.g_current.row(step) + at, scale * g_v);
  }
  for (Index step = all.end; step < all.steps; ++step) stream(all.g_current.row(step) + at, Floats{});
  if (all.sum_current != nullptr) addTo(all.sum_current + at, sum);
  if (all.sum_given != nullptr) addTo(all.sum_given + at, sum_given);
}

template <Surrogate kKind, Reset kReset>
inline void stepsBackwardWith(const StepsBackward& all) {
  for (Index at = 0; at < all.columns; at += kLanes) stepBackThroughAll<kKind, kReset>(all, at);
  finishStream();
}

template <Surrogate kKind>
inline void stepsBackwardBy(const StepsBackward& all) {
  switch (all.reset) {
    case Reset::Subtract: return stepsBackwardWith<kKind, Reset::Subtract>(all);
    case Reset::Zero: return stepsBackwardWith<kKind, Reset::Zero>(all);
    case Reset::None: return stepsBackwardWith<kKind, Reset::None>(all);
  }
}

inline void stepsBackward(const StepsBackward& all) { SNNJAX_WITH_SURROGATE(all.surrogate.kind, stepsBackwardBy, all) }

}  // namespace snnjax::SNNJAX_ISA
