// Convolutions spike by spike: a spike adds a patch of weights to the outputs around it, and its gradients read or
// write the same patch.
#pragma once

#include "../kernels.hpp"
#include "simd.hpp"

namespace snnjax::SNNJAX_ISA {

// The runs of weights of a channel in of a pixel that count, and of outputs behind the first.
class PatchRuns {
 public:
  [[gnu::always_inline]] PatchRuns(const PixelPatches& patches, std::uint32_t pixel, std::uint32_t channel)
      : patches_(patches), patch_(patches.of_pixel[pixel]) {
    // The pixels of one group lie side by side.
    const bool is_whole = patches.pixel == patches.outputs_of_group;
    rows_ = patch_.pixels == 0 ? 0 : patch_.rows;
    pixels_ = is_whole ? 1 : patch_.pixels;
    run_ = is_whole ? static_cast<Index>(patch_.pixels) * patches.pixel : patches.outputs_of_group;
    from_ = static_cast<Index>(patch_.weights) + static_cast<Index>(channel) * patch_.channel;
    to_ = static_cast<Index>(patch_.out) - patches.first;
    if (!is_whole) to_ += static_cast<Index>(channel / patches.channels_of_group) * patches.outputs_of_group;
  }

  [[gnu::always_inline]] bool next() {
    while (row_ < rows_) {
      const Index start = to_ + row_ * patches_.row + pixel_ * patches_.pixel;
      const Index begin = start < 0 ? -start : 0;
      const Index end = run_ < patches_.columns - start ? run_ : patches_.columns - start;
      weight = from_ + row_ * patch_.row + pixel_ * run_ + begin;
      output = start + begin;
      count = end - begin;
      if (++pixel_ >= pixels_) pixel_ = 0, ++row_;
      if (count > 0) return true;
    }
    return false;
  }

  Index weight = 0, output = 0, count = 0;

 private:
  const PixelPatches& patches_;
  const PixelPatch& patch_;
  Index from_, to_, run_, rows_, pixels_, row_ = 0, pixel_ = 0;
};

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
  std::uint32_t pixel, channel;  // the first one's
  int count;
  const float* weights[kMostOfPixel];  // of their channels, from that of the first
};

// Those that come first in a list: one where channels are divided into groups, which have outputs of their own.
[[gnu::always_inline]] inline PixelInputs ofOnePixel(const std::uint32_t* ids, Index count, const PixelPatches& patches,
                                                     const float* weights) {
  const std::uint32_t pixel = ids[0] / patches.channels, first = pixel * patches.channels;
  PixelInputs own{pixel, ids[0] - first, 1, {weights}};
  const Index channel = patches.of_pixel[pixel].channel;
  const Index left = patches.channels == patches.channels_of_group ? count : 1;
  while (own.count < kMostOfPixel && own.count < left && ids[own.count] - first < patches.channels) {
    // Ids need not ascend.
    own.weights[own.count] = weights + (Index{ids[own.count]} - Index{ids[0]}) * channel;
    ++own.count;
  }
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

// out += the sums of values * weights of kCount inputs of a pixel, one after the other: the same numbers as if they
// came one by one.
template <int kCount>
inline void addPixel(const PixelPatches& patches, const PixelInputs& own, const float* values, float* out) {
  for (PatchRuns runs(patches, own.pixel, own.channel); runs.next();) {
    float* const to = out + runs.output;
    Index i = 0;
    for (; i + kLanes <= runs.count; i += kLanes) {
      Floats sum = load(to + i);
      SNNJAX_UNROLL
      for (int k = 0; k < kCount; ++k) sum += values[k] * load(own.weights[k] + runs.weight + i);
      store(to + i, sum);
    }
    if (i == runs.count) continue;
    SNNJAX_UNROLL
    for (int k = 0; k < kCount; ++k) addRun(to + i, own.weights[k] + runs.weight + i, values[k], runs.count - i);
  }
}

inline void addPatches(const SpikeRow& spikes, const PixelPatches& patches, const float* weights, float* out) {
  constexpr float kOnes[kMostOfPixel] = {1.0F, 1.0F, 1.0F, 1.0F};
  for (std::uint32_t k = 0; k < spikes.count;) {
    const float* values = spikes.values == nullptr ? kOnes : spikes.values + k;
    const PixelInputs own = ofOnePixel(spikes.ids + k, spikes.count - k, patches, weights);
    withNumber(own, [&]<int kCount>() { addPixel<kCount>(patches, own, values, out); });
    k += static_cast<std::uint32_t>(own.count);
  }
}

inline void addPatchGradients(const SpikeRow& spikes, const PixelPatches& patches, float* weights, const float* g) {
  for (std::uint32_t k = 0; k < spikes.count; ++k) {
    const float value = spikes.values == nullptr ? 1.0F : spikes.values[k];
    const std::uint32_t pixel = spikes.ids[k] / patches.channels;
    for (PatchRuns runs(patches, pixel, spikes.ids[k] - pixel * patches.channels); runs.next();) {
      addRun(weights + runs.weight, g + runs.output, value, runs.count);
    }
  }
}

// The dot products of kCount inputs of a pixel with the outputs around it, which are read once.
template <int kCount>
inline void dotPixel(const PixelPatches& patches, const PixelInputs& own, const float* g, float* out) {
  constexpr int kSums = 2;  // of each input: additions to one do not wait for those to the other
  Floats sums[kCount][kSums];
  SNNJAX_UNROLL
  for (int k = 0; k < kCount; ++k) {
    SNNJAX_UNROLL
    for (int j = 0; j < kSums; ++j) sums[k][j] = Floats{};
  }
  for (PatchRuns runs(patches, own.pixel, own.channel); runs.next();) {
    const float* const from = g + runs.output;
    Index i = 0;
    for (; i + kSums * kLanes <= runs.count; i += kSums * kLanes) {
      SNNJAX_UNROLL
      for (int j = 0; j < kSums; ++j) {
        const Floats x = load(from + i + j * kLanes);
        SNNJAX_UNROLL
        for (int k = 0; k < kCount; ++k) sums[k][j] += x * load(own.weights[k] + runs.weight + i + j * kLanes);
      }
    }
    for (; i + kLanes <= runs.count; i += kLanes) {
      const Floats x = load(from + i);
      SNNJAX_UNROLL
      for (int k = 0; k < kCount; ++k) sums[k][0] += x * load(own.weights[k] + runs.weight + i);
    }
    if (i == runs.count) continue;
    const Floats rest = loadPart(from + i, runs.count - i);
    SNNJAX_UNROLL
    for (int k = 0; k < kCount; ++k) {
      sums[k][kSums - 1] += rest * loadPart(own.weights[k] + runs.weight + i, runs.count - i);
    }
  }
  SNNJAX_UNROLL
  for (int k = 0; k < kCount; ++k) out[k] = sumOf(sums[k][0] + sums[k][1]);
}

inline void dotPatches(const std::uint32_t* ids, Index count, const PixelPatches& patches, const float* weights,
                       const float* g, float* out) {
  for (Index k = 0; k < count;) {
    const PixelInputs own = ofOnePixel(ids + k, count - k, patches, weights);
    withNumber(own, [&]<int kCount>() { dotPixel<kCount>(patches, own, g, out + k); });
    k += own.count;
  }
}

}  // namespace snnjax::SNNJAX_ISA
