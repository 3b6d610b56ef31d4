// One time step of LIF neurons, forward and backward.
#pragma once

#include <algorithm>
#include <limits>

#include "../kernels.hpp"
#include "simd.hpp"
#include "surrogate.hpp"

namespace snnjax::SNNJAX_ISA {

template <Reset kReset>
inline Floats reset(Floats v, Floats threshold) {
  const Mask spiked = greater(v, threshold);
  if constexpr (kReset == Reset::Subtract) return select(spiked, v - threshold, v);
  if constexpr (kReset == Reset::Zero) return select(spiked, Floats{}, v);
  return v;
}

// A threshold, raised by the second state where it is coupled.
template <bool kSecond>
inline Floats raised(const NeuronConstants& constants, const float* resting, Index column, [[maybe_unused]] Floats w) {
  const Floats threshold = load(resting + column);
  if constexpr (kSecond) {
    const float* const coupling = constants.second_state.threshold_coupling;
    if (coupling != nullptr) return threshold + load(coupling + column) * w;
  }
  return threshold;
}

// The second state after a step, from both states and the spikes before it.
inline Floats nextW(const SecondState<const float*>& constants, Index column, Floats w, Floats v, Mask spiked,
                    Floats current) {
  Floats next = load(constants.w_decay + column) * w;
  if (constants.w_membrane != nullptr) next += load(constants.w_membrane + column) * v;
  if (constants.w_gain != nullptr) next += load(constants.w_gain + column) * current;
  if (constants.w_jump != nullptr) next = select(spiked, next + load(constants.w_jump + column), next);
  return next;
}

// The steps that are left of the refractory period after a step, from those before it.
inline Floats remainingAfter(const NeuronConstants& constants, Index column, Floats remaining, Mask spiked) {
  return select(spiked, load(constants.refractory + column), maximum(remaining - 1.0F, Floats{}));
}

// A threshold, which no membrane reaches in the refractory period.
inline Floats reachable(Mask held, Floats threshold) {
  return select(held, splat(std::numeric_limits<float>::infinity()), threshold);
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

template <typename T>
inline T* rowOf(Rows<T> rows, Index r) {
  return rows.data == nullptr ? nullptr : rows.row(r);
}
template <typename T>
inline NeuronState<T*> rowOf(const NeuronState<Rows<T>>& state, Index r) {
  NeuronState<T*> row{};
  SNNJAX_UNROLL
  for (unsigned i = 0; i < kNeuronStates; ++i) row.at(i) = rowOf(state.at(i), r);
  return row;
}

inline NeuronState<const float*> constOf(const NeuronState<float*>& state) {
  NeuronState<const float*> row{};
  SNNJAX_UNROLL
  for (unsigned i = 0; i < kNeuronStates; ++i) row.at(i) = state.at(i);
  return row;
}

inline void putPart(float* row, Index column, Index left, Floats x) {
  if (row != nullptr) left < kLanes ? storePart(row + column, x, left) : store(row + column, x);
}

// Past its end, a sample keeps its membranes and is silent.
inline void keepRow(const StepForward& step, Index r) {
  const RecordRow to = recordRow(step, r);
  const NeuronState<const float*> before = rowOf(step.before, r);
  const NeuronState<float*> state = rowOf(step.state, r);
  for (Index column = 0; column < step.columns; column += kLanes) {
    const Index left = step.columns - column;
    for (unsigned i = 0; i < kNeuronStates; ++i) {
      if (before.at(i) != nullptr) store(state.at(i) + column, load(before.at(i) + column));
    }
    to.put(column, left, load(state.v + column), load(step.constants.threshold + column));
    putPart(rowOf(step.record_current, r), column, left, Floats{});
  }
  for (Index word = 0; word < (step.columns + 63) / 64; ++word) {
    step.spikes.row(r)[word] = 0;
    if (step.near.data != nullptr) step.near.row(r)[word] = 0;
  }
}

// What a row of neurons has, from some column on.
struct NeuronRow {
  NeuronConstants constants;
  const float *current, *factor, *term;
  NeuronState<const float*> before;
  NeuronState<float*> state;
  float* counts;
  RecordRow to;
  float* record_current;
  Index left;  // columns that there are
};

// Given currents times a factor and with a term, either of which may be nullptr. Fused as in `affine`, and so are
// membranes: the same bits wherever they are computed.
inline Floats scaledCurrent(Floats x, const float* factor, const float* term, Index at) {
  if (factor == nullptr) return term == nullptr ? x : x + load(term + at);
  return term == nullptr ? load(factor + at) * x : fused(load(term + at), load(factor + at), x);
}
inline Floats steppedMembrane(Floats decay, Floats behind_reset, Floats gain, Floats current) {
  return fused(gain * current, decay, behind_reset);
}

// `kVectors` vectors of neurons, up to a word of bits. `kKeeps`: membranes or currents are recorded, which inference
// mostly does not need. `kHolds`: neurons have a refractory period.
template <Reset kReset, bool kNear, bool kKeeps, bool kSecond, bool kHolds, int kVectors>
inline void stepVectors(const NeuronRow& row, Index column, std::uint64_t* spikes, std::uint64_t* near) {
  Floats v[kVectors], w[kVectors]{};
  Mask spiked[kVectors], held[kVectors]{};
  SNNJAX_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    const Index at = column + i * kLanes;
    const Floats before = load(row.before.v + at);
    const Floats current = scaledCurrent(load(row.current + at), row.factor, row.term, at);
    [[maybe_unused]] Floats remaining{};
    if constexpr (kSecond) w[i] = load(row.before.w + at);
    if constexpr (kHolds) {
      remaining = load(row.before.remaining + at);
      held[i] = greater(remaining, Floats{});
    }
    Floats threshold = raised<kSecond>(row.constants, row.constants.threshold, at, w[i]);
    v[i] = steppedMembrane(load(row.constants.decay + at), reset<kReset>(before, threshold),
                           load(row.constants.gain + at), current);
    if constexpr (kSecond) {
      const SecondState<const float*>& second = row.constants.second_state;
      const Floats w_before = w[i];
      w[i] = nextW(second, at, w_before, before, greater(before, threshold), current);
      if (second.v_coupling != nullptr) v[i] += load(second.v_coupling + at) * w[i];
      if constexpr (kHolds) w[i] = select(held[i], w_before, w[i]);
      threshold = raised<kSecond>(row.constants, row.constants.threshold, at, w[i]);
      store(row.state.w + at, w[i]);
    }
    if constexpr (kHolds) v[i] = select(held[i], before, v[i]);
    if constexpr (kKeeps) putPart(row.record_current, at, row.left - at, current);
    if constexpr (kKeeps) row.to.put(at, row.left - at, v[i], threshold);
    store(row.state.v + at, v[i]);
    if constexpr (kHolds) threshold = reachable(held[i], threshold);
    spiked[i] = greater(v[i], threshold);
    if constexpr (kHolds) {
      store(row.state.remaining + at, remainingAfter(row.constants, at, remaining, spiked[i]));
    }
    if (row.counts == nullptr) continue;
    const Floats count = load(row.counts + at);
    store(row.counts + at, select(spiked[i], count + 1.0F, count));
  }
  SNNJAX_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    const Index at = column + i * kLanes, bit = at % 64;
    *spikes |= static_cast<std::uint64_t>(bitsOf(spiked[i])) << bit;
    if constexpr (kNear) {
      Floats second_threshold = raised<kSecond>(row.constants, row.constants.second_threshold, at, w[i]);
      if constexpr (kHolds) second_threshold = reachable(held[i], second_threshold);
      const Mask above = greater(v[i], second_threshold);
      *near |= static_cast<std::uint64_t>(bitsOf(above)) << bit;
    }
  }
}

template <Reset kReset, bool kNear, bool kKeeps, bool kSecond, bool kHolds>
inline void stepRow(const StepForward& step, Index r) {
  constexpr int kVectors = 64 / kLanes;
  const Index columns = step.columns;
  const NeuronRow row{.constants = step.constants,
                      .current = step.current.row(r),
                      .factor = step.factor,
                      .term = step.term,
                      .before = step.before.v.data == nullptr ? constOf(rowOf(step.state, r)) : rowOf(step.before, r),
                      .state = rowOf(step.state, r),
                      .counts = rowOf(step.counts, r),
                      .to = recordRow(step, r),
                      .record_current = rowOf(step.record_current, r),
                      .left = columns};
  for (Index first = 0; first < columns; first += 64) {
    std::uint64_t spikes = 0, near = 0;
    if (first + 64 <= columns) {
      stepVectors<kReset, kNear, kKeeps, kSecond, kHolds, kVectors>(row, first, &spikes, &near);
    } else {
      for (Index column = first; column < columns; column += kLanes) {
        stepVectors<kReset, kNear, kKeeps, kSecond, kHolds, 1>(row, column, &spikes, &near);
      }
    }
    step.spikes.row(r)[first / 64] = spikes;
    if (kNear && (!kHolds || step.near.data != nullptr)) step.near.row(r)[first / 64] = near & ~spikes;
  }
}

// Of neurons with a refractory period there is one way for all that may be absent: a third of the code.
template <Reset kReset, bool kNear, bool kSecond, bool kHolds>
inline void stepForwardWith(const StepForward& step) {
  const bool keeps =
      step.record.data != nullptr || step.record_bfloat16.data != nullptr || step.record_current.data != nullptr;
  for (Index r = 0; r < step.rows; ++r) {
    if (step.step >= step.ends[r]) {
      keepRow(step, r);
    } else {
      kHolds || keeps ? stepRow<kReset, kNear, true, kSecond, kHolds>(step, r)
                      : stepRow<kReset, kNear, kHolds, kSecond, kHolds>(step, r);
    }
  }
}

template <bool kNear, bool kSecond, bool kHolds = false>
inline void stepForwardBy(const StepForward& step) {
  switch (step.reset) {
    case Reset::Subtract: return stepForwardWith<Reset::Subtract, kNear, kSecond, kHolds>(step);
    case Reset::Zero: return stepForwardWith<Reset::Zero, kNear, kSecond, kHolds>(step);
    case Reset::None: return stepForwardWith<Reset::None, kNear, kSecond, kHolds>(step);
  }
}

inline void stepForward(const StepForward& step) {
  if (step.state.remaining.data != nullptr) {
    step.state.w.data == nullptr ? stepForwardBy<true, false, true>(step) : stepForwardBy<true, true, true>(step);
  } else if (step.state.w.data == nullptr) {
    step.near.data == nullptr ? stepForwardBy<false, false>(step) : stepForwardBy<true, false>(step);
  } else {
    step.near.data == nullptr ? stepForwardBy<false, true>(step) : stepForwardBy<true, true>(step);
  }
  if (step.record_streams) finishStream();
}

inline Floats part(const float* row, Index column, Index left) {
  return left >= kLanes ? load(row + column) : loadPart(row + column, left);
}

template <bool HasFactor, bool HasTerm>
inline void affineBy(const float* x, const float* factor, const float* term, Index columns, float* out) {
  for (Index column = 0; column < columns; column += kLanes) {
    const Index left = columns - column;
    const Floats own = part(x, column, left), scale = HasFactor ? part(factor, column, left) : splat(1.0F);
    putPart(out, column, left, HasTerm ? fused(part(term, column, left), scale, own) : scale * own);
  }
}

// Compilers test in each round what they are not told before the loop.
inline void affine(const float* x, const float* factor, const float* term, Index columns, float* out) {
  if (factor != nullptr) {
    term != nullptr ? affineBy<true, true>(x, factor, term, columns, out)
                    : affineBy<true, false>(x, factor, term, columns, out);
  } else {
    term != nullptr ? affineBy<false, true>(x, factor, term, columns, out)
                    : affineBy<false, false>(x, factor, term, columns, out);
  }
}

// As `stepVectors` computes it, by the same operations: bit-identical.
inline void stepAgain(const StepAgain& step) {
  const NeuronConstants constants = step.constants;
  for (Index r = 0; r < step.rows; ++r) {
    const bool runs = step.step < step.ends[r];
    const NeuronState<const float*> from = rowOf(step.before, r);
    const NeuronState<float*> to = rowOf(step.after, r);
    for (Index column = 0; column < step.columns; column += kLanes) {
      const Index left = step.columns - column;
      Floats w = from.w == nullptr ? Floats{} : load(from.w + column);
      Floats remaining = from.remaining == nullptr ? Floats{} : load(from.remaining + column);
      const Mask held = greater(remaining, Floats{});
      if (runs && from.w != nullptr) {
        const Floats before = part(from.v, column, left);
        const bool has_current = constants.second_state.w_gain != nullptr;
        const Floats current = has_current ? part(step.current.row(r), column, left) : Floats{};
        const Mask spiked = greater(before, raised<true>(constants, constants.threshold, column, w));
        w = select(held, w, nextW(constants.second_state, column, w, before, spiked, current));
      }
      if (runs && from.remaining != nullptr) {
        const Floats threshold = reachable(held, raised<true>(constants, constants.threshold, column, w));
        const Mask spiked = greater(part(step.v.row(r), column, left), threshold);
        remaining = remainingAfter(constants, column, remaining, spiked);
      }
      if (from.w != nullptr) store(to.w + column, w);
      if (from.remaining != nullptr) store(to.remaining + column, remaining);
    }
  }
}

// How neurons are reset, and what the derivatives are of.
struct ResetForm {
  Reset reset;
  bool detach_reset;
  SurrogateForm surrogate;
};

// The cotangent of v from that of u, the membrane behind the reset, and what of it reaches the threshold.
template <Surrogate kKind>
[[gnu::always_inline]] inline Floats throughReset(const ResetForm& step, Floats g_u, Floats v, Floats threshold,
                                                  Floats* g_threshold) {
  const Mask spiked = greater(v, threshold);
  const Floats g_v = step.reset == Reset::Zero ? select(spiked, Floats{}, g_u) : g_u;
  *g_threshold = step.reset == Reset::Subtract ? select(spiked, -g_u, Floats{}) : Floats{};
  if (step.detach_reset || step.reset == Reset::None) return g_v;
  const Floats removed = step.reset == Reset::Zero ? v : threshold;
  const Floats through = -g_u * removed * slopeAt<kKind>(v - threshold, step.surrogate);
  *g_threshold -= through;
  return g_v + through;
}

// From the cotangent of a spike. One of 0 stays 0 whatever the slope, NaN included.
template <Surrogate kKind>
inline Floats throughSpike(Floats g_s, Floats above_threshold, SurrogateForm surrogate) {
  return select(notEqual(g_s, Floats{}), g_s * slopeAt<kKind>(above_threshold, surrogate), Floats{});
}

inline Floats resetBy(Reset kind, Floats v, Floats threshold) {
  if (kind == Reset::Subtract) return reset<Reset::Subtract>(v, threshold);
  return kind == Reset::Zero ? reset<Reset::Zero>(v, threshold) : v;
}

inline void addTo(float* sum, Floats x) { store(sum, load(sum) + x); }

// What the cotangents of the constants of some neurons gain from a step.
struct StepSums {
  const StepBackward& step;
  Index r, column, left;
  Floats g_v, g_w, g_threshold, w;

  void add(float* sum, Floats x) const {
    if (sum != nullptr) addTo(sum + column, x);
  }

  template <bool kSecond>
  void add() const {
    const SecondState<float*>& second = step.sums.second_state;
    add(step.sums.threshold, g_threshold);
    const bool needs_before = step.before.v.data != nullptr;
    const Floats before = needs_before ? part(step.before.v.row(r), column, left) : Floats{};
    Floats w_before{};
    if constexpr (kSecond) {
      if (step.before.w.data != nullptr) w_before = part(step.before.w.row(r), column, left);
    }
    const Floats threshold = raised<kSecond>(step.constants, step.constants.threshold, column, w_before);
    add(step.sums.decay, g_v * resetBy(step.reset, before, threshold));
    if constexpr (kSecond) {
      add(second.threshold_coupling, g_threshold * w);
      add(second.v_coupling, g_v * w);
      add(second.w_decay, g_w * w_before);
      add(second.w_membrane, g_w * before);
      add(second.w_jump, select(greater(before, threshold), g_w, Floats{}));
    }
    if (step.current.data == nullptr) return;
    const Floats current = part(step.current.row(r), column, left);
    add(step.sums.gain, g_v * current);
    if constexpr (kSecond) add(second.w_gain, g_w * current);
  }
};

// What reaches the spikes of a vector of neurons: of the listed ones from above, from the counts, and, held or not,
// through the jump of the second state.
template <bool kSecond, bool kHolds>
[[gnu::always_inline]] inline Floats reachingSpikes(const StepBackward& step, Index r, Index column, Floats v, Floats w,
                                                    [[maybe_unused]] Mask held, Floats g_w_next) {
  const NeuronConstants& constants = step.constants;
  Floats g_s = load(step.g_spikes.row(r) + column);
  if (step.listed.data != nullptr) {
    const std::uint64_t word = step.listed.row(r)[column / 64] >> (column % 64);
    g_s = select(maskOf(static_cast<std::uint32_t>(word)), g_s, Floats{});
  }
  if (step.g_counts.data != nullptr) {
    const Mask reached = greater(v, raised<kSecond>(constants, constants.second_threshold, column, w));
    g_s += select(reached, load(step.g_counts.row(r) + column), Floats{});
  }
  if constexpr (kHolds) g_s = select(held, Floats{}, g_s);
  if constexpr (kSecond) {
    const float* const jump = constants.second_state.w_jump;
    if (jump != nullptr) g_s += load(jump + column) * g_w_next;
  }
  return g_s;
}

// Where neurons with so many steps left, padded to whole vectors, are held; nullptr: nowhere.
inline Mask heldAt(const float* remaining, Index column) {
  return remaining == nullptr ? Mask{} : greater(load(remaining + column), Floats{});
}

// The cotangents of a vector of second states.
[[gnu::always_inline]] inline Floats stepSecondStateBack(const StepBackward& step, Index column, Floats g_w_decayed,
                                                         Floats g_v, Floats g_threshold, const float* g_last_w) {
  const SecondState<const float*>& constants = step.constants.second_state;
  Floats g_w = g_w_decayed;
  if (constants.threshold_coupling != nullptr) g_w += load(constants.threshold_coupling + column) * g_threshold;
  if (g_last_w != nullptr) g_w += load(g_last_w + column);
  if (constants.v_coupling != nullptr) g_w += load(constants.v_coupling + column) * g_v;
  return g_w;
}

// One row. `kPlain`: a detached reset that subtracts, no sums, no counts, every neuron listed, no second state.
//
// Neurons that the step has held pass the cotangents of their states on as they are, and those that the next step holds
// take them so: nothing went through its equation.
template <Surrogate kKind, bool kPlain, bool kSecond, bool kHolds>
inline void stepBackRow(const StepBackward& step, Index r, [[maybe_unused]] bool has_sums) {
  const NeuronConstants constants = step.constants;
  const Index columns = step.columns;
  const NeuronState<const float*> after = rowOf(step.after, r), before = rowOf(step.before, r);
  const float *g_spikes = step.g_spikes.row(r), *next_v = rowOf(step.next_v, r);
  const float* next_g_spikes = rowOf(step.next_g_spikes, r);
  const bool is_last = step.step + 1 == step.ends[r];
  const NeuronState<const float*> g_last = is_last ? rowOf(step.g_last, r) : NeuronState<const float*>{};
  const NeuronState<float*> g_state = rowOf(step.g_state, r);
  float* g_v_row = step.g_v.row(r);
  for (Index column = 0; column < columns; column += kLanes) {
    if (next_v != nullptr) __builtin_prefetch(next_v + column);
    if (next_g_spikes != nullptr) __builtin_prefetch(next_g_spikes + column);
    const Index left = columns - column;
    const Floats v = part(after.v, column, left);
    const Floats w = kSecond && after.w != nullptr ? part(after.w, column, left) : Floats{};
    const Floats g_w_next = kSecond ? load(g_state.w + column) : Floats{};
    const Floats threshold = raised<kSecond>(constants, constants.threshold, column, w);
    [[maybe_unused]] Mask held{}, held_next{};
    if constexpr (kHolds) {
      held = heldAt(before.remaining, column);
      held_next = heldAt(after.remaining, column);
    }
    const auto unless = [](Mask mask, Floats x) { return kHolds ? select(mask, Floats{}, x) : x; };
    const Floats g_next = load(g_state.v + column), g_w_stepped = unless(held_next, g_w_next);
    Floats g_s, g_threshold{}, g_v = g_next;
    if constexpr (kPlain) {
      g_s = load(g_spikes + column);
    } else {
      g_s = reachingSpikes<kSecond, kHolds>(step, r, column, v, w, held, g_w_stepped);
      const ResetForm form{step.reset, step.detach_reset, step.surrogate};
      g_v = throughReset<kKind>(form, g_next, v, threshold, &g_threshold);
    }
    if constexpr (kHolds) {
      g_v = select(held_next, g_next, g_v);
      g_threshold = unless(held_next, g_threshold);
    }
    const Floats through_spike = throughSpike<kKind>(g_s, v - threshold, step.surrogate);
    g_v += through_spike;
    if (g_last.v != nullptr) g_v += load(g_last.v + column);
    g_threshold -= through_spike;
    Floats g_w{};
    if constexpr (kSecond) {
      const SecondState<const float*>& second = constants.second_state;
      if (second.w_membrane != nullptr) g_v += load(second.w_membrane + column) * g_w_stepped;
      const Floats g_w_decayed = load(second.w_decay + column) * g_w_next;
      g_w = stepSecondStateBack(step, column, kHolds ? select(held_next, g_w_next, g_w_decayed) : g_w_decayed,
                                unless(held, g_v), g_threshold, g_last.w);
      store(g_state.w + column, g_w);
    }
    const Floats g_own = g_v, g_decayed = load(constants.decay + column) * g_v;
    g_v = unless(held, g_v);  // from here on of what the step has computed
    g_w = unless(held, g_w);
    Floats g_current = g_v;
    if constexpr (kSecond) {
      const SecondState<const float*>& second = constants.second_state;
      if (second.w_gain != nullptr) {
        g_current = load(constants.gain + column) * g_v + load(second.w_gain + column) * g_w;
      }
    }
    store(g_v_row + column, g_current);
    if (step.sum_current != nullptr) addTo(step.sum_current + column, g_current);
    if (step.sum_given != nullptr) addTo(step.sum_given + column, g_current * part(step.given.row(r), column, left));
    store(g_state.v + column, kHolds ? select(held, g_own, g_decayed) : g_decayed);
    if constexpr (!kPlain) {
      if (has_sums) StepSums{step, r, column, left, g_v, g_w, g_threshold, w}.template add<kSecond>();
    }
  }
}

template <Surrogate kKind>
inline void stepBackwardWith(const StepBackward& step) {
  const bool has_second = step.constants.second_state.w_decay != nullptr;
  const bool holds = step.after.remaining.data != nullptr;
  bool has_sums = false;
  for (unsigned i = 0; i < kGlifConstants; ++i) has_sums = has_sums || step.sums.at(i) != nullptr;
  const bool is_plain = step.reset == Reset::Subtract && step.detach_reset && !has_sums && !has_second &&
                        step.listed.data == nullptr && step.g_counts.data == nullptr;
  for (Index r = 0; r < step.rows; ++r) {
    if (step.step >= step.ends[r]) {
      for (Index column = 0; column < step.columns; column += kLanes) store(step.g_v.row(r) + column, Floats{});
    } else if (holds) {
      has_second ? stepBackRow<kKind, false, true, true>(step, r, has_sums)
                 : stepBackRow<kKind, false, false, true>(step, r, has_sums);
    } else if (has_second) {
      stepBackRow<kKind, false, true, false>(step, r, has_sums);
    } else if (is_plain) {
      stepBackRow<kKind, true, false, false>(step, r, false);
    } else {
      stepBackRow<kKind, false, false, false>(step, r, has_sums);
    }
  }
}

template <Surrogate kKind>
inline void markSlopesWith(SurrogateForm surrogate, const NeuronConstants& constants, const float* v, const float* w,
                           const float* next_v, Index columns, std::uint64_t* slopes) {
  for (Index column = 0; column < columns; column += kLanes) {
    if (column % 64 == 0) slopes[column / 64] = 0;
    if (next_v != nullptr) __builtin_prefetch(next_v + column);
    const Index left = columns - column;
    const Floats own_w = w == nullptr ? Floats{} : part(w, column, left);
    const Floats x = part(v, column, left) - raised<true>(constants, constants.threshold, column, own_w);
    std::uint64_t bits = bitsOf(notEqual(slopeAt<kKind>(x, surrogate), Floats{}));
    if (left < kLanes) bits &= (std::uint64_t{1} << left) - 1;
    slopes[column / 64] |= bits << (column % 64);
  }
}

inline void stepBackward(const StepBackward& step) {
  SNNJAX_WITH_SURROGATE(step.surrogate.kind, stepBackwardWith, step)
}

inline void markSlopes(SurrogateForm surrogate, const NeuronConstants& constants, const float* v, const float* w,
                       const float* next_v, Index columns, std::uint64_t* slopes) {
  SNNJAX_WITH_SURROGATE(surrogate.kind, markSlopesWith, surrogate, constants, v, w, next_v, columns, slopes)
}

}  // namespace snnjax::SNNJAX_ISA
