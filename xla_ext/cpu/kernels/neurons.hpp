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

template <Reset kReset>
inline Floats reset(Floats v, Floats threshold) {
  const Mask spiked = greater(v, threshold);
  if constexpr (kReset == Reset::kSubtract) return select(spiked, v - threshold, v);
  if constexpr (kReset == Reset::kZero) return select(spiked, Floats{}, v);
  return v;
}

// Where the membranes of a row after the step are recorded.
struct RecordRow {
  float* float32;
  std::uint16_t* bfloat16;
  bool streams;

  void put(Index column, Index left, Floats v, Floats threshold) const {
    if (float32 != nullptr) {
      if (left < kLanes) {
        storePart(float32 + column, v, left);
      } else if (streams) {
        stream(float32 + column, v);
      } else {
        store(float32 + column, v);
      }
    }
    if (bfloat16 == nullptr) return;
    const Floats origin = select(notEqual(threshold - threshold, Floats{}), Floats{}, threshold);
    const Ints bits = (Ints)roundToBfloat16(v - origin);
    for (int lane = 0; lane < (left < kLanes ? static_cast<int>(left) : kLanes); ++lane) {
      bfloat16[column + lane] = static_cast<std::uint16_t>(static_cast<std::uint32_t>(bits[lane]) >> 16);
    }
  }
};

inline RecordRow recordRow(const StepForward& step, Index r) {
  float* float32 = step.record.data == nullptr ? nullptr : step.record.row(r);
  std::uint16_t* bfloat16 = step.record_bfloat16.data == nullptr ? nullptr : step.record_bfloat16.row(r);
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(float32) % sizeof(Floats) == 0;
  return {float32, bfloat16, step.record_streams && is_aligned};
}

// Behind its end, a sample keeps its membranes and is silent.
inline void keepRow(const StepForward& step, Index r) {
  const RecordRow to = recordRow(step, r);
  for (Index column = 0; column < step.columns; column += kLanes) {
    to.put(column, step.columns - column, load(step.v.row(r) + column), load(step.constants.threshold + column));
  }
  for (Index word = 0; word < (step.columns + 63) / 64; ++word) {
    step.spikes.row(r)[word] = 0;
    if (step.near.data != nullptr) step.near.row(r)[word] = 0;
  }
}

// What a row of neurons has, from some column on.
struct NeuronRow {
  NeuronConstants constants;
  const float* current;
  float* state;
  float* counts;
  RecordRow to;
  Index left;  // columns that there are
};

// `kVectors` vectors of neurons, up to a word of bits. `kKeeps`: the membranes are recorded, which most of those of a
// prediction are not.
template <Reset kReset, bool kNear, bool kKeeps, int kVectors>
inline void stepVectors(const NeuronRow& row, Index column, std::uint64_t* spikes, std::uint64_t* near) {
  Floats v[kVectors];
  Mask spiked[kVectors];
  SNNJAX_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    const Index at = column + i * kLanes;
    const Floats threshold = load(row.constants.threshold + at);
    const Floats u = reset<kReset>(load(row.state + at), threshold);
    v[i] = load(row.constants.decay + at) * u + load(row.constants.gain + at) * load(row.current + at);
    if constexpr (kKeeps) row.to.put(at, row.left - at, v[i], threshold);
    store(row.state + at, v[i]);
    spiked[i] = greater(v[i], threshold);
    const Floats count = load(row.counts + at);
    store(row.counts + at, select(spiked[i], count + 1.0F, count));
  }
  SNNJAX_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    const Index at = column + i * kLanes, bit = at % 64;
    *spikes |= static_cast<std::uint64_t>(bitsOf(spiked[i])) << bit;
    if constexpr (kNear) {
      const Mask above = greater(v[i], load(row.constants.second_threshold + at));
      *near |= static_cast<std::uint64_t>(bitsOf(above)) << bit;
    }
  }
}

template <Reset kReset, bool kNear, bool kKeeps>
inline void stepRow(const StepForward& step, Index r) {
  constexpr int kVectors = 64 / kLanes;
  const Index columns = step.columns;
  const NeuronRow row{step.constants,     step.current.row(r), step.v.row(r),
                      step.counts.row(r), recordRow(step, r),  columns};
  for (Index first = 0; first < columns; first += 64) {
    std::uint64_t spikes = 0, near = 0;
    if (first + 64 <= columns) {
      stepVectors<kReset, kNear, kKeeps, kVectors>(row, first, &spikes, &near);
    } else {
      for (Index column = first; column < columns; column += kLanes) {
        stepVectors<kReset, kNear, kKeeps, 1>(row, column, &spikes, &near);
      }
    }
    step.spikes.row(r)[first / 64] = spikes;
    if constexpr (kNear) step.near.row(r)[first / 64] = near & ~spikes;
  }
}

template <Reset kReset, bool kNear>
inline void stepForwardWith(const StepForward& step) {
  const bool keeps = step.record.data != nullptr || step.record_bfloat16.data != nullptr;
  for (Index r = 0; r < step.rows; ++r) {
    if (step.step >= step.ends[r]) {
      keepRow(step, r);
    } else {
      keeps ? stepRow<kReset, kNear, true>(step, r) : stepRow<kReset, kNear, false>(step, r);
    }
  }
}

template <bool kNear>
inline void stepForwardNear(const StepForward& step) {
  switch (step.reset) {
    case Reset::kSubtract: return stepForwardWith<Reset::kSubtract, kNear>(step);
    case Reset::kZero: return stepForwardWith<Reset::kZero, kNear>(step);
    case Reset::kNone: return stepForwardWith<Reset::kNone, kNear>(step);
  }
}

inline void stepForward(const StepForward& step) {
  step.near.data == nullptr ? stepForwardNear<false>(step) : stepForwardNear<true>(step);
  if (step.record_streams) finishStream();
}

// The cotangent of v from that of u, the membrane behind the reset, and what of it reaches the threshold.
template <SurrogateKind kKind>
inline Floats throughReset(const StepBackward& step, Floats g_u, Floats v, Floats threshold, Floats* g_threshold) {
  const Mask spiked = greater(v, threshold);
  const Floats g_v = step.reset == Reset::kZero ? select(spiked, Floats{}, g_u) : g_u;
  *g_threshold = step.reset == Reset::kSubtract ? select(spiked, -g_u, Floats{}) : Floats{};
  if (step.detach_reset || step.reset == Reset::kNone) return g_v;
  const Floats removed = step.reset == Reset::kZero ? v : threshold;
  const Floats through = -g_u * removed * slopeAt<kKind>(v - threshold, step.surrogate.slope);
  *g_threshold -= through;
  return g_v + through;
}

inline Floats resetBy(Reset kind, Floats v, Floats threshold) {
  if (kind == Reset::kSubtract) return reset<Reset::kSubtract>(v, threshold);
  return kind == Reset::kZero ? reset<Reset::kZero>(v, threshold) : v;
}

inline Floats part(const float* row, Index column, Index left) {
  return left >= kLanes ? load(row + column) : loadPart(row + column, left);
}

inline void addTo(float* sum, Floats x) { store(sum, load(sum) + x); }

// One row. `kPlain`: a detached reset that subtracts, no sums, no counts, every neuron listed.
template <SurrogateKind kKind, bool kPlain>
inline void stepBackRow(const StepBackward& step, Index r) {
  const NeuronConstants constants = step.constants;
  const Index columns = step.columns;
  const float slope = step.surrogate.slope;
  const float* membranes = step.v.row(r);
  const float* g_spikes = step.g_spikes.row(r);
  const float* next_v = step.next_v.data == nullptr ? nullptr : step.next_v.row(r);
  const float* next_g_spikes = step.next_g_spikes.data == nullptr ? nullptr : step.next_g_spikes.row(r);
  const float* g_last = step.g_last.data != nullptr && step.step + 1 == step.ends[r] ? step.g_last.row(r) : nullptr;
  float* state = step.g_u.row(r);
  float* g_v_row = step.g_v.row(r);
  for (Index column = 0; column < columns; column += kLanes) {
    if (next_v != nullptr) __builtin_prefetch(next_v + column);
    if (next_g_spikes != nullptr) __builtin_prefetch(next_g_spikes + column);
    const Floats threshold = load(constants.threshold + column);
    const Floats v = part(membranes, column, columns - column);
    Floats g_s = load(g_spikes + column), g_threshold{};
    Floats g_v = load(state + column);
    if constexpr (!kPlain) {
      if (step.listed.data != nullptr) {
        const std::uint64_t word = step.listed.row(r)[column / 64] >> (column % 64);
        g_s = select(maskOf(static_cast<std::uint32_t>(word)), g_s, Floats{});
      }
      if (step.g_counts.data != nullptr) {
        const Mask reached = greater(v, load(constants.second_threshold + column));
        g_s += select(reached, load(step.g_counts.row(r) + column), Floats{});
      }
      g_v = throughReset<kKind>(step, g_v, v, threshold, &g_threshold);
    }
    // A cotangent of 0 stays 0 whatever the slope, NaN included.
    const Floats through_spike = select(notEqual(g_s, Floats{}), g_s * slopeAt<kKind>(v - threshold, slope), Floats{});
    g_v += through_spike;
    if (g_last != nullptr) g_v += load(g_last + column);
    store(g_v_row + column, g_v);
    store(state + column, load(constants.decay + column) * g_v);
    if constexpr (!kPlain) {
      if (step.sum_threshold != nullptr) addTo(step.sum_threshold + column, g_threshold - through_spike);
      if (step.sum_decay != nullptr) {
        const Floats before = part(step.v_before.row(r), column, columns - column);
        addTo(step.sum_decay + column, g_v * resetBy(step.reset, before, threshold));
      }
    }
  }
}

template <SurrogateKind kKind>
inline void stepBackwardWith(const StepBackward& step) {
  const bool is_plain = step.reset == Reset::kSubtract && step.detach_reset && step.sum_threshold == nullptr &&
                        step.sum_decay == nullptr && step.listed.data == nullptr && step.g_counts.data == nullptr;
  for (Index r = 0; r < step.rows; ++r) {
    if (step.step >= step.ends[r]) {
      for (Index column = 0; column < step.columns; column += kLanes) store(step.g_v.row(r) + column, Floats{});
    } else if (is_plain) {
      stepBackRow<kKind, true>(step, r);
    } else {
      stepBackRow<kKind, false>(step, r);
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
#define SNNJAX_WITH_SURROGATE(kind, function, ...)                                                       \
  switch (kind) {                                                                                        \
    case SurrogateKind::kSuperspike: return function<SurrogateKind::kSuperspike>(__VA_ARGS__);           \
    case SurrogateKind::kArctan: return function<SurrogateKind::kArctan>(__VA_ARGS__);                   \
    case SurrogateKind::kTriangle: return function<SurrogateKind::kTriangle>(__VA_ARGS__);               \
    case SurrogateKind::kGaussian: return function<SurrogateKind::kGaussian>(__VA_ARGS__);               \
    case SurrogateKind::kSigmoid: return function<SurrogateKind::kSigmoid>(__VA_ARGS__);                 \
    case SurrogateKind::kBoxcar: return function<SurrogateKind::kBoxcar>(__VA_ARGS__);                   \
    case SurrogateKind::kStraightThrough: return function<SurrogateKind::kStraightThrough>(__VA_ARGS__); \
  }

inline void stepBackward(const StepBackward& step) {
  SNNJAX_WITH_SURROGATE(step.surrogate.kind, stepBackwardWith, step)
}

inline void derivative(Surrogate surrogate, const float* x, Index count, float* out) {
  SNNJAX_WITH_SURROGATE(surrogate.kind, derivativeWith, x, count, surrogate.slope, out)
}

#undef SNNJAX_WITH_SURROGATE

}  // namespace snnjax::SNNJAX_ISA
