// Convolutions spike by spike: a spike adds a patch of weights to the outputs around it, and its gradients read or
// write the same patch.
#pragma once

#include "../kernels.hpp"
#include "simd.hpp"

namespace snnjax::SNNJAX_ISA {

// Calls visit(weight, output, count) for each run of weights of a channel in of a pixel that counts, and of outputs
// behind the first.
template <typename Visit>
[[gnu::always_inline]] inline void eachRun(const PixelPatches& patches, std::uint32_t pixel, std::uint32_t channel,
                                           Visit visit) {
  const PixelPatch& patch = patches.of_pixel[pixel];
  Index weight = static_cast<Index>(patch.weights) + static_cast<Index>(channel) * patch.channel;
  Index out = static_cast<Index>(patch.out) - patches.first;
  const auto part = [&](Index from, Index to, Index count) {
    const Index begin = to < 0 ? -to : 0, end = count < patches.columns - to ? count : patches.columns - to;
    if (begin < end) visit(from + begin, to + begin, end - begin);
  };
  if (patches.pixel == patches.outputs_of_group) {  // one group whose pixels lie side by side
    const Index count = static_cast<Index>(patch.pixels) * patches.pixel;
    for (std::uint32_t r = 0; r < patch.rows; ++r, weight += patch.row, out += patches.row) part(weight, out, count);
    return;
  }
  out += static_cast<Index>(channel / patches.channels_of_group) * patches.outputs_of_group;
  for (std::uint32_t r = 0; r < patch.rows; ++r, weight += patch.row, out += patches.row) {
    for (Index i = 0; i < static_cast<Index>(patch.pixels); ++i) {
      part(weight + i * patches.outputs_of_group, out + i * patches.pixel, patches.outputs_of_group);
    }
  }
}

// The same for an id.
template <typename Visit>
[[gnu::always_inline]] inline void eachRun(const PixelPatches& patches, std::uint32_t id, Visit visit) {
  const std::uint32_t pixel = id / patches.channels;
  eachRun(patches, pixel, id - pixel * patches.channels, visit);
}

// to += value * from. A partial vector is divided into smaller ones: on Zen, partial AVX2 stores take longer than all
// of this.
[[gnu::always_inline]] inline void addRun(float* to, const float* from, float value, Index count) {
  Index i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, load(to + i) + value * load(from + i));
#if defined(__AVX512F__)
  if (i < count) storePart(to + i, loadPart(to + i, count - i) + value * loadPart(from + i, count - i), count - i);
#else
  if (i + 4 <= count) {
    using Four = float __attribute__((vector_size(16)));
    Four a, b;
    __builtin_memcpy(&a, to + i, sizeof a);
    __builtin_memcpy(&b, from + i, sizeof b);
    a += value * b;
    __builtin_memcpy(to + i, &a, sizeof a);
    i += 4;
  }
  for (; i < count; ++i) to[i] += value * from[i];
#endif
}

// Inputs of one pixel, whose patches lie over the same outputs.
constexpr int kMostOfPixel = 4;
struct PixelInputs {
  std::uint32_t pixel;
  int count;
  const float* weights[kMostOfPixel];  // of their channels, from that of channel 0
};

// Those that come first in a list, if there is one group of channels.
[[gnu::always_inline]] inline PixelInputs ofOnePixel(const std::uint32_t* ids, Index count, const PixelPatches& patches,
                                                     const float* weights) {
  PixelInputs own{ids[0] / patches.channels, 0, {}};
  const std::uint32_t first = own.pixel * patches.channels;
  do {
    own.weights[own.count] = weights + Index{ids[own.count] - first} * patches.of_pixel[own.pixel].channel;
    ++own.count;
  } while (own.count < kMostOfPixel && own.count < count && ids[own.count] - first < patches.channels);
  return own;
}

// Calls work.operator()<count>() with their number.
template <typename Work>
[[gnu::always_inline]] inline void withNumber(const PixelInputs& inputs, Work work) {
  switch (inputs.count) {
    case 1: return work.template operator()<1>();
    case 2: return work.template operator()<2>();
    case 3: return work.template operator()<3>();
    default: return work.template operator()<kMostOfPixel>();
  }
}

// to += the sum of values * weights, one after the other: as many sums as if they came one by one.
template <int kCount>
[[gnu::always_inline]] inline void addRuns(float* to, const PixelInputs& spikes, const float* values, Index from,
                                           Index count) {
  Index i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Floats sum = load(to + i);
    SNNJAX_UNROLL
    for (int k = 0; k < kCount; ++k) sum += values[k] * load(spikes.weights[k] + from + i);
    store(to + i, sum);
  }
  if (i == count) return;
  for (int k = 0; k < kCount; ++k) addRun(to + i, spikes.weights[k] + from + i, values[k], count - i);
}

inline void addPatches(const SpikeRow& spikes, const PixelPatches& patches, const float* weights, float* out) {
  if (patches.channels != patches.channels_of_group) {
    for (std::uint32_t k = 0; k < spikes.count; ++k) {
      const float value = spikes.values == nullptr ? 1.0F : spikes.values[k];
      eachRun(patches, spikes.ids[k],
              [&](Index from, Index to, Index count) { addRun(out + to, weights + from, value, count); });
    }
    return;
  }
  constexpr float kOnes[kMostOfPixel] = {1.0F, 1.0F, 1.0F, 1.0F};
  for (std::uint32_t k = 0; k < spikes.count;) {
    const PixelInputs own = ofOnePixel(spikes.ids + k, spikes.count - k, patches, weights);
    const float* values = spikes.values == nullptr ? kOnes : spikes.values + k;
    withNumber(own, [&]<int kCount>() {
      eachRun(patches, own.pixel, 0,
              [&](Index from, Index to, Index count) { addRuns<kCount>(out + to, own, values, from, count); });
    });
    k += static_cast<std::uint32_t>(own.count);
  }
}

inline void addPatchGradients(const SpikeRow& spikes, const PixelPatches& patches, float* weights, const float* g) {
  for (std::uint32_t k = 0; k < spikes.count; ++k) {
    const float value = spikes.values == nullptr ? 1.0F : spikes.values[k];
    eachRun(patches, spikes.ids[k],
            [&](Index to, Index from, Index count) { addRun(weights + to, g + from, value, count); });
  }
}

// Adds to kSums sums each the products of weights of kCount inputs with a run of outputs, which is read once.
template <int kCount, int kSums>
[[gnu::always_inline]] inline void dotRuns(const float* const* weights, Index from, const float* g, Index run,
                                           Floats (*sums)[kSums]) {
  const auto add = [&](int j, Index i, Floats x) {
    SNNJAX_UNROLL
    for (int k = 0; k < kCount; ++k) sums[k][j] += x * load(weights[k] + from + i);
  };
  Index i = 0;
  for (; i + kSums * kLanes <= run; i += kSums * kLanes) {
    SNNJAX_UNROLL
    for (int j = 0; j < kSums; ++j) add(j, i + j * kLanes, load(g + i + j * kLanes));
  }
  for (; i + kLanes <= run; i += kLanes) add(0, i, load(g + i));
  if (i == run) return;
  const Floats rest = loadPart(g + i, run - i);
  for (int k = 0; k < kCount; ++k) sums[k][kSums - 1] += rest * loadPart(weights[k] + from + i, run - i);
}

template <int kCount>
[[gnu::always_inline]] inline void dotPixel(const PixelPatches& patches, const PixelInputs& own, std::uint32_t channel,
                                            const float* g, float* out) {
  constexpr int kSums = kCount == 1 ? 4 : 2;  // at least as many additions are in flight
  Floats sums[kCount][kSums] = {};
  eachRun(patches, own.pixel, channel,
          [&](Index from, Index to, Index run) { dotRuns<kCount, kSums>(own.weights, from, g + to, run, sums); });
  SNNJAX_UNROLL
  for (int k = 0; k < kCount; ++k) {
    SNNJAX_UNROLL
    for (int j = 1; j < kSums; ++j) sums[k][0] += sums[k][j];
    out[k] = sumOf(sums[k][0]);
  }
}

inline void dotPatches(const std::uint32_t* ids, Index count, const PixelPatches& patches, const float* weights,
                       const float* g, float* out) {
  const bool is_one_group = patches.channels == patches.channels_of_group;
  for (Index k = 0; k < count;) {
    if (!is_one_group) {
      const std::uint32_t pixel = ids[k] / patches.channels;
      dotPixel<1>(patches, {pixel, 1, {weights}}, ids[k] - pixel * patches.channels, g, out + k);
      ++k;
      continue;
    }
    const PixelInputs own = ofOnePixel(ids + k, count - k, patches, weights);
    withNumber(own, [&]<int kCount>() { dotPixel<kCount>(patches, own, 0, g, out + k); });
    k += own.count;
  }
}

}  // namespace snnjax::SNNJAX_ISA
