// Delays of all synapses between some neurons and a vector of targets: a row holds what the targets receive in a step,
// and tap k of a neuron what its spikes bring them k steps later. Two taps of each lane are not 0, but to add all of
// them takes less time than to find these two.
#pragma once

#include "../kernels.hpp"
#include "neuron.hpp"

namespace snnjax::SNNJAX_ISA {

// Calls work.operator()<count>() with a count that the compiler knows, so that as many vectors stay in registers.
template <int kMost, typename Work>
[[gnu::always_inline]] inline void withCount(Index count, Work work) {
  if constexpr (kMost > 2) {
    if (count < kMost) return withCount<kMost - 1>(count, work);
  }
  work.template operator()<kMost>();
}

inline void readVectors(Rows<const float> from, Index rows, Index columns, Rows<float> to) {
  for (Index i = 0; i < rows; ++i) store(to.row(i), part(from.row(i), 0, columns));
}

// Rows are too far apart for the caches to hold them until all their vectors are written.
inline void writeVectors(Rows<const float> from, Index rows, Index columns, Rows<float> to) {
  for (Index i = 0; i < rows; ++i) {
    float* const row = to.row(i);
    const Floats x = load(from.row(i));
    if (columns < kLanes) {
      storePart(row, x, columns);
    } else {
      reinterpret_cast<std::uintptr_t>(row) % sizeof(Floats) == 0 ? stream(row, x) : store(row, x);
    }
  }
}

// Weights, each in two shares: that which arrives after `whole` steps, and that one step later.
struct Shares {
  Floats whole, now, next;
};

// With `count` taps.
inline Shares sharesOf(Floats weights, Floats delays, Index count) {
  const auto longest = static_cast<float>(count - 1), last = std::max(longest - 1.0F, 0.0F);  // that can be split
  Floats delay = select(greater(delays, Floats{}), delays, Floats{});                         // NaN counts as 0
  delay = select(greater(delay, splat(longest)), splat(longest), delay);
  Floats whole = __builtin_convertvector(__builtin_convertvector(delay, Ints), Floats);
  whole = select(greater(whole, splat(last)), splat(last), whole);
  const Floats next = delay - whole, now = 1.0F - next;
  // A share of 0 is nothing whatever the weight.
  return {whole, select(notEqual(now, Floats{}), now * weights, Floats{}),
          select(notEqual(next, Floats{}), next * weights, Floats{})};
}

inline void spreadShares(const float* weights, const float* delays, Index targets, Index count, float* taps) {
  const Shares shares = sharesOf(loadPart(weights, targets), loadPart(delays, targets), count);
  for (Index tap = 0; tap < count; ++tap) {
    const Floats later = static_cast<float>(tap) - shares.whole;
    const Floats own = select(notEqual(later, splat(1.0F)), Floats{}, shares.next);
    store(taps + tap * kLanes, select(notEqual(later, Floats{}), own, shares.now));
  }
}

inline void pickTaps(const float* sums, Index count, const float* weights, const float* delays, Index targets,
                     float* g_weights, float* g_delays) {
  const Shares shares = sharesOf(splat(1.0F), loadPart(delays, targets), count);
  Floats now{}, next{};
  for (Index tap = 0; tap < count; ++tap) {
    const Floats own = load(sums + tap * kLanes), later = static_cast<float>(tap) - shares.whole;
    now = select(notEqual(later, Floats{}), now, own);
    next = select(notEqual(later, splat(1.0F)), next, own);
  }
  const Floats split = shares.now * now + shares.next * next;
  putPart(g_weights, 0, targets, select(notEqual(shares.next, Floats{}), split, now));
  if (g_delays != nullptr) putPart(g_delays, 0, targets, loadPart(weights, targets) * (next - now));
}

inline void splitShares(const float* weights, const float* delays, Index count, Index taps, float* whole, float* now,
                        float* next) {
  for (Index k = 0; k < count; k += kLanes) {
    const Index left = count - k;
    const Shares own = sharesOf(part(weights, k, left), part(delays, k, left), taps);
    putPart(whole, k, left, own.whole);
    putPart(now, k, left, own.now);
    putPart(next, k, left, own.next);
  }
}

// Sums of `kVectors` stay in registers. Where rows are `kShift` vectors apart, what both shares read in common is read
// once.
template <int kVectors, int kShift>
inline void collectVectors(const DelayedShares& shares, Rows<const float> arriving, float* out) {
  Floats sums[kVectors];
  SNNJAX_UNROLL
  for (int i = 0; i < kVectors; ++i) sums[i] = load(out + i * kLanes);
  for (Index k = 0; k < shares.count; ++k) {
    const float *const first = arriving.row(shares.rows[k]), *const second = first + arriving.stride;
    const Floats now = splat(shares.now[k]), next = splat(shares.next[k]);
    SNNJAX_UNROLL
    for (int i = 0; i < kVectors + kShift; ++i) {
      Floats x = load(first + i * kLanes);
      keepLoaded(x);
      if (i < kVectors) sums[i] += now * x;
      if (kShift > 0 && i >= kShift) sums[i - kShift] += next * x;
      if (kShift == 0) sums[i] += next * load(second + i * kLanes);
    }
  }
  SNNJAX_UNROLL
  for (int i = 0; i < kVectors; ++i) store(out + i * kLanes, sums[i]);
}

template <int kShift>
inline void collectShifted(const DelayedShares& shares, Rows<const float> arriving, Index vectors, float* out) {
  constexpr int kMost = kLanes / 2 + 6;  // sums, which leave some registers for factors
  for (Index i = 0; i < vectors; i += kMost) {
    const Rows<const float> from{arriving.data + i * kLanes, arriving.stride};
    if (vectors - i == 1) return collectVectors<1, kShift>(shares, from, out + i * kLanes);
    withCount<kMost>(vectors - i,
                     [&]<int kVectors>() { collectVectors<kVectors, kShift>(shares, from, out + i * kLanes); });
  }
}

inline void collectShares(const DelayedShares& shares, Rows<const float> arriving, Index vectors, float* out) {
  if (arriving.stride == kLanes) return collectShifted<1>(shares, arriving, vectors, out);
  if (arriving.stride == 2 * kLanes) return collectShifted<2>(shares, arriving, vectors, out);
  collectShifted<0>(shares, arriving, vectors, out);
}

// Sums of all steps stay in registers for the synapses of a sender, one for each share: of a few steps, enough
// additions are in flight by that, and the order of additions is the same for any number of vectors.
template <int kSteps, int kVectors>
inline void collectVectorsOf(const SenderShares& shares, const float* rows, Rows<float> sums) {
  constexpr int kRow = kVectors * kLanes, kSums = kSteps * kVectors;
  const float *const now = shares.now, *const next = shares.next;
  std::uint32_t k = 0;
  for (Index run = 0; run < shares.count; ++run) {
    float* const to = sums.row(shares.runs[run].sender);
    Floats first[kSums], second[kSums];
    SNNJAX_UNROLL
    for (int i = 0; i < kSums; ++i) first[i] = load(to + i * kLanes), second[i] = Floats{};
    for (const std::uint32_t end = shares.runs[run].end; k < end; ++k) {
      const float* const row = rows + Index{shares.rows[k]} * kRow;
      const Floats of_first = splat(now[k]), of_second = splat(next[k]);
      SNNJAX_UNROLL
      for (int i = 0; i < kSums + kVectors; ++i) {
        Floats x = load(row + i * kLanes);
        keepLoaded(x);
        if (i < kSums) first[i] += of_first * x;
        if (i >= kVectors) second[i - kVectors] += of_second * x;
      }
    }
    SNNJAX_UNROLL
    for (int i = 0; i < kSums; ++i) store(to + i * kLanes, first[i] + second[i]);
  }
}

template <int kSteps>
inline void collectStepsOf(const SenderShares& shares, const float* rows, Index vectors, Rows<float> sums) {
  constexpr int kMost = static_cast<int>(longestCollected(kLanes)) / kLanes;
  if (vectors == 1) return collectVectorsOf<kSteps, 1>(shares, rows, sums);
  withCount<kMost>(vectors, [&]<int kVectors>() { collectVectorsOf<kSteps, kVectors>(shares, rows, sums); });
}

inline void collectSteps(const SenderShares& shares, Index steps, const float* rows, Index vectors, Rows<float> sums) {
  if (steps == 1) return collectStepsOf<1>(shares, rows, vectors, sums);
  if (steps == 2) return collectStepsOf<2>(shares, rows, vectors, sums);
  collectStepsOf<4>(shares, rows, vectors, sums);
}

inline void addTaps(const SpikeRow& spikes, const float* taps, Index count, float* rows) {
  withCount<kLanes>(count, [&]<int kTaps>() {
    Floats own[kTaps];
    SNNJAX_UNROLL
    for (int i = 0; i < kTaps; ++i) own[i] = load(taps + i * kLanes);
    for (std::uint32_t k = 0; k < spikes.count; ++k) {
      float* const row = rows + static_cast<Index>(spikes.ids[k]) * kLanes;
      if (spikes.values == nullptr) {
        SNNJAX_UNROLL
        for (int i = 0; i < kTaps; ++i) store(row + i * kLanes, load(row + i * kLanes) + own[i]);
      } else {
        SNNJAX_UNROLL
        for (int i = 0; i < kTaps; ++i) store(row + i * kLanes, load(row + i * kLanes) + spikes.values[k] * own[i]);
      }
    }
  });
}

inline void sumTaps(const SpikeRow& spikes, const float* rows, Index count, float* sums) {
  withCount<kLanes>(count, [&]<int kTaps>() {
    Floats own[kTaps];
    SNNJAX_UNROLL
    for (int i = 0; i < kTaps; ++i) own[i] = load(sums + i * kLanes);
    for (std::uint32_t k = 0; k < spikes.count; ++k) {
      const float* const row = rows + static_cast<Index>(spikes.ids[k]) * kLanes;
      if (spikes.values == nullptr) {
        SNNJAX_UNROLL
        for (int i = 0; i < kTaps; ++i) own[i] += load(row + i * kLanes);
      } else {
        SNNJAX_UNROLL
        for (int i = 0; i < kTaps; ++i) own[i] += spikes.values[k] * load(row + i * kLanes);
      }
    }
    SNNJAX_UNROLL
    for (int i = 0; i < kTaps; ++i) store(sums + i * kLanes, own[i]);
  });
}

// The products with `kSpikes` windows of rows, in two sums each: about eight additions are in flight.
template <int kSpikes>
inline void dotsOfTaps(const std::uint32_t* ids, const float* taps, Index count, const float* rows, float* out) {
  const float* row[kSpikes];
  Floats even[kSpikes], odd[kSpikes];
  SNNJAX_UNROLL
  for (int k = 0; k < kSpikes; ++k) {
    row[k] = rows + static_cast<Index>(ids[k]) * kLanes;
    even[k] = odd[k] = Floats{};
  }
  Index tap = 0;
  for (; tap + 2 <= count; tap += 2) {
    const Floats first = load(taps + tap * kLanes), second = load(taps + (tap + 1) * kLanes);
    SNNJAX_UNROLL
    for (int k = 0; k < kSpikes; ++k) {
      even[k] += first * load(row[k] + tap * kLanes);
      odd[k] += second * load(row[k] + (tap + 1) * kLanes);
    }
  }
  if (tap < count) {
    const Floats last = load(taps + tap * kLanes);
    SNNJAX_UNROLL
    for (int k = 0; k < kSpikes; ++k) even[k] += last * load(row[k] + tap * kLanes);
  }
  SNNJAX_UNROLL
  for (int k = 0; k < kSpikes; ++k) out[k] += sumOf(even[k] + odd[k]);
}

inline void dotTaps(const std::uint32_t* ids, Index spikes, const float* taps, Index count, const float* rows,
                    float* out) {
  Index k = 0;
  for (; k + 4 <= spikes; k += 4) dotsOfTaps<4>(ids + k, taps, count, rows, out + k);
  for (; k < spikes; ++k) dotsOfTaps<1>(ids + k, taps, count, rows, out + k);
}

}  // namespace snnjax::SNNJAX_ISA
