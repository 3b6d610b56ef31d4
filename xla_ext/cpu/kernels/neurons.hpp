// One time step of LIF neurons, forward and backward, and the surrogate derivatives.
#pragma once

#include "../kernels.hpp"
#include "simd.hpp"

namespace snnjax::SNNJAX_ISA {

// A surrogate derivative at x = v - threshold; the equations are those of snnjax/surrogates.py.
template <SurrogateKind kKind>
inline Floats slopeAt(Floats x, float slope) {
  constexpr float kHalfPi = 1.57079633F;
  const Floats one = splat(1.0F);
  if constexpr (kKind == SurrogateKind::kSuperspike) {
    const Floats base = one + slope * absolute(x);
    return one / (base * base);
  } else if constexpr (kKind == SurrogateKind::kArctan) {
    const Floats scaled = kHalfPi * slope * x;
    return one / (one + scaled * scaled);
  } else if constexpr (kKind == SurrogateKind::kTriangle) {
    return maximum(one - slope * absolute(x), select(notEqual(x, x), x, Floats{}));
  } else if constexpr (kKind == SurrogateKind::kGaussian) {
    const Floats scaled = slope * x;
    return select(notEqual(x, x), x, exponential(-(scaled * scaled)));
  } else if constexpr (kKind == SurrogateKind::kSigmoid) {
    const Floats decayed = exponential(-slope * absolute(x));  // sigma(-|slope x|) = e / (1 + e)
    return select(notEqual(x, x), x, slope * decayed / ((one + decayed) * (one + decayed)));
  } else if constexpr (kKind == SurrogateKind::kBoxcar) {
    return select(greater(splat(0.5F / slope), absolute(x)), splat(slope), Floats{});
  } else {
    return one;
  }
}

inline Floats reset(Floats v, Mask spiked, Floats threshold, Reset kind) {
  if (kind == Reset::kSubtract) return select(spiked, v - threshold, v);
  if (kind == Reset::kZero) return select(spiked, Floats{}, v);
  return v;
}

inline void record(const StepForward& step, Index r, Index column, Floats v) {
  const Index left = step.columns - column;
  const bool whole = left >= kLanes;
  if (step.record.data != nullptr) {
    float* to = step.record.row(r) + column;
    whole ? store(to, v) : storePart(to, v, left);
  }
  if (step.record_bfloat16.data != nullptr) {  // v is a bfloat16 number: its upper half is all of it
    std::uint16_t* to = step.record_bfloat16.row(r) + column;
    const Ints bits = (Ints)v;
    for (int lane = 0; lane < (whole ? kLanes : static_cast<int>(left)); ++lane) {
      to[lane] = static_cast<std::uint16_t>(static_cast<std::uint32_t>(bits[lane]) >> 16);
    }
  }
}

// One vector of neurons; yields the bits of its spikes and of those near the threshold.
inline void stepVector(const StepForward& step, Index r, Index column, std::uint64_t* spikes, std::uint64_t* near) {
  const Floats threshold = load(step.constants.threshold + column);
  Floats v = load(step.v.row(r) + column);
  const Floats u = reset(v, greater(v, threshold), threshold, step.reset);
  v = load(step.constants.decay + column) * u +
      load(step.constants.gain + column) * load(step.current.row(r) + column);
  if (step.rounds_to_bfloat16) v = roundToBfloat16(v);
  store(step.v.row(r) + column, v);
  record(step, r, column, v);
  const Mask spiked = greater(v, threshold);
  float* counts = step.counts.row(r) + column;
  store(counts, load(counts) + select(spiked, splat(1.0F), Floats{}));
  *spikes = bitsOf(spiked);
  *near = bitsOf(greater(v, load(step.constants.second_threshold + column))) & ~*spikes;
}

inline void stepForward(const StepForward& step) {
  for (Index r = 0; r < step.rows; ++r) {
    const bool ended = step.step >= step.ends[r];
    for (Index first = 0; first < step.columns; first += 64) {
      std::uint64_t spikes = 0, near = 0;
      const Index behind = first + 64 < step.columns ? first + 64 : step.columns;
      for (Index column = first; column < behind; column += kLanes) {
        if (ended) {
          record(step, r, column, load(step.v.row(r) + column));
          continue;
        }
        std::uint64_t own_spikes = 0, own_near = 0;
        stepVector(step, r, column, &own_spikes, &own_near);
        spikes |= own_spikes << (column - first);
        near |= own_near << (column - first);
      }
      step.spikes.row(r)[first / 64] = spikes;
      if (step.near.data != nullptr) step.near.row(r)[first / 64] = near;
    }
  }
}

// The cotangent of v from that of u, the membrane behind the reset, and what of it reaches the threshold.
template <SurrogateKind kKind>
inline Floats throughReset(const StepBackward& step, Floats g_u, Floats v, Floats threshold, Floats* g_threshold) {
  const Mask spiked = greater(v, threshold);
  Floats g_v = step.reset == Reset::kZero ? select(spiked, Floats{}, g_u) : g_u;
  *g_threshold = step.reset == Reset::kSubtract ? select(spiked, -g_u, Floats{}) : Floats{};
  if (step.detach_reset || step.reset == Reset::kNone) return g_v;
  const Floats removed = step.reset == Reset::kZero ? v : threshold;
  const Floats through = -g_u * removed * slopeAt<kKind>(v - threshold, step.surrogate.slope);
  *g_threshold -= through;
  return g_v + through;
}

inline Floats part(Rows<const float> rows, Index r, Index column, Index left) {
  return left >= kLanes ? load(rows.row(r) + column) : loadPart(rows.row(r) + column, left);
}

template <SurrogateKind kKind>
inline void stepBackVector(const StepBackward& step, Index r, Index column) {
  const Index left = step.columns - column;
  const Floats threshold = load(step.constants.threshold + column);
  const Floats v = part(step.v, r, column, left);
  Floats g_s = load(step.g_spikes.row(r) + column);
  if (step.listed.data != nullptr) {
    const std::uint64_t word = step.listed.row(r)[column / 64] >> (column % 64);
    g_s = select(maskOf(static_cast<std::uint32_t>(word)), g_s, Floats{});
  }
  if (step.g_counts.data != nullptr) {
    const Mask reached = greater(v, load(step.constants.second_threshold + column));
    g_s += select(reached, load(step.g_counts.row(r) + column), Floats{});
  }
  // A cotangent of 0 stays 0 whatever the slope, NaN included.
  const Floats slope = slopeAt<kKind>(v - threshold, step.surrogate.slope);
  const Floats through_spike = select(notEqual(g_s, Floats{}), g_s * slope, Floats{});
  Floats g_threshold;
  float* state = step.g_u.row(r) + column;
  Floats g_v = throughReset<kKind>(step, load(state), v, threshold, &g_threshold) + through_spike;
  if (step.g_last.data != nullptr && step.step + 1 == step.ends[r]) g_v += load(step.g_last.row(r) + column);
  store(step.g_v.row(r) + column, g_v);
  store(state, load(step.constants.decay + column) * g_v);
  if (step.sum_threshold != nullptr) {
    float* sum = step.sum_threshold + column;
    store(sum, load(sum) + g_threshold - through_spike);
  }
  if (step.sum_decay != nullptr) {
    const Floats before = part(step.v_before, r, column, left);
    float* sum = step.sum_decay + column;
    store(sum, load(sum) + g_v * reset(before, greater(before, threshold), threshold, step.reset));
  }
}

template <SurrogateKind kKind>
inline void stepBackwardWith(const StepBackward& step) {
  for (Index r = 0; r < step.rows; ++r) {
    if (step.step < step.ends[r]) {
      for (Index column = 0; column < step.columns; column += kLanes) stepBackVector<kKind>(step, r, column);
    } else {
      for (Index column = 0; column < step.columns; column += kLanes) store(step.g_v.row(r) + column, Floats{});
    }
  }
}

template <SurrogateKind kKind>
inline void derivativeWith(const float* x, Index count, float slope, float* out) {
  for (Index i = 0; i < count; i += kLanes) {
    const Index left = count - i;
    if (left >= kLanes) {
      store(out + i, slopeAt<kKind>(load(x + i), slope));
    } else {
      storePart(out + i, slopeAt<kKind>(loadPart(x + i, left), slope), left);
    }
  }
}

// Calls `function<kind>`: the surrogate is chosen once a call, not once a neuron.
#define SNNJAX_WITH_SURROGATE(kind, function, ...)                                                         \
  switch (kind) {                                                                                          \
    case SurrogateKind::kSuperspike: return function<SurrogateKind::kSuperspike>(__VA_ARGS__);             \
    case SurrogateKind::kArctan: return function<SurrogateKind::kArctan>(__VA_ARGS__);                     \
    case SurrogateKind::kTriangle: return function<SurrogateKind::kTriangle>(__VA_ARGS__);                 \
    case SurrogateKind::kGaussian: return function<SurrogateKind::kGaussian>(__VA_ARGS__);                 \
    case SurrogateKind::kSigmoid: return function<SurrogateKind::kSigmoid>(__VA_ARGS__);                   \
    case SurrogateKind::kBoxcar: return function<SurrogateKind::kBoxcar>(__VA_ARGS__);                     \
    case SurrogateKind::kStraightThrough: return function<SurrogateKind::kStraightThrough>(__VA_ARGS__);   \
  }

inline void stepBackward(const StepBackward& step) {
  SNNJAX_WITH_SURROGATE(step.surrogate.kind, stepBackwardWith, step)
}

inline void derivative(Surrogate surrogate, const float* x, Index count, float* out) {
  SNNJAX_WITH_SURROGATE(surrogate.kind, derivativeWith, x, count, surrogate.slope, out)
}

#undef SNNJAX_WITH_SURROGATE

}  // namespace snnjax::SNNJAX_ISA
