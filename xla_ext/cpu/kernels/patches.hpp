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

// Spikes of one pixel, whose patches lie over the same outputs.
constexpr int kMostOfPixel = 4;
struct PixelSpikes {
  const float* weights[kMostOfPixel];  // of their channels, from that of channel 0
  float values[kMostOfPixel];
};

// to += the sum of values * weights, one after the other: as many sums as if they came one by one.
template <int kCount>
[[gnu::always_inline]] inline void addRuns(float* to, const PixelSpikes& spikes, Index from, Index count) {
  Index i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Floats sum = load(to + i);
    SNNJAX_UNROLL
    for (int k = 0; k < kCount; ++k) sum += spikes.values[k] * load(spikes.weights[k] + from + i);
    store(to + i, sum);
  }
  if (i == count) return;
  for (int k = 0; k < kCount; ++k) addRun(to + i, spikes.weights[k] + from + i, spikes.values[k], count - i);
}

template <int kCount>
inline void addPixel(const PixelPatches& patches, std::uint32_t pixel, const PixelSpikes& spikes, float* out) {
  eachRun(patches, pixel, 0,
          [&](Index from, Index to, Index count) { addRuns<kCount>(out + to, spikes, from, count); });
}

inline void addPatches(const SpikeRow& spikes, const PixelPatches& patches, const float* weights, float* out) {
  const auto valueOf = [&](std::uint32_t k) { return spikes.values == nullptr ? 1.0F : spikes.values[k]; };
  if (patches.channels != patches.channels_of_group) {
    for (std::uint32_t k = 0; k < spikes.count; ++k) {
      eachRun(patches, spikes.ids[k],
              [&](Index from, Index to, Index count) { addRun(out + to, weights + from, valueOf(k), count); });
    }
    return;
  }
  for (std::uint32_t k = 0; k < spikes.count;) {
    const std::uint32_t pixel = spikes.ids[k] / patches.channels, first = pixel * patches.channels;
    PixelSpikes own;
    int count = 0;
    do {
      const Index channel = spikes.ids[k] - first;
      own.weights[count] = weights + channel * patches.of_pixel[pixel].channel;
      own.values[count++] = valueOf(k++);
    } while (count < kMostOfPixel && k < spikes.count && spikes.ids[k] - first < patches.channels);
    switch (count) {
      case 1: addPixel<1>(patches, pixel, own, out); break;
      case 2: addPixel<2>(patches, pixel, own, out); break;
      case 3: addPixel<3>(patches, pixel, own, out); break;
      default: addPixel<kMostOfPixel>(patches, pixel, own, out); break;
    }
  }
}

inline void addPatchGradients(const SpikeRow& spikes, const PixelPatches& patches, float* weights, const float* g) {
  for (std::uint32_t k = 0; k < spikes.count; ++k) {
    const float value = spikes.values == nullptr ? 1.0F : spikes.values[k];
    eachRun(patches, spikes.ids[k],
            [&](Index to, Index from, Index count) { addRun(weights + to, g + from, value, count); });
  }
}

// Runs of as many floats, one for each of some spikes, and what they are multiplied with.
constexpr Index kMostOfChannel = 64;
struct ChannelRuns {
  const float* from[kMostOfChannel];
  float values[kMostOfChannel];
  Index count;
};

// Adds to vectors [i, i + kVectors) of a run of weights.
template <int kVectors>
[[gnu::always_inline]] inline void addToVectors(float* to, const ChannelRuns& runs, Index i) {
  Floats sums[kVectors];
  SNNJAX_UNROLL
  for (int k = 0; k < kVectors; ++k) sums[k] = load(to + i + k * kLanes);
  for (Index s = 0; s < runs.count; ++s) {
    const float* from = runs.from[s] + i;
    SNNJAX_UNROLL
    for (int k = 0; k < kVectors; ++k) sums[k] += runs.values[s] * load(from + k * kLanes);
  }
  SNNJAX_UNROLL
  for (int k = 0; k < kVectors; ++k) store(to + i + k * kLanes, sums[k]);
}

inline void addToRun(float* to, const ChannelRuns& runs, Index count) {
  if (runs.count == 0) return;
  Index i = 0;
  for (; i + 12 * kLanes <= count; i += 12 * kLanes) addToVectors<12>(to, runs, i);
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) addToVectors<4>(to, runs, i);
  for (; i + kLanes <= count; i += kLanes) addToVectors<1>(to, runs, i);
  for (Index s = 0; i < count && s < runs.count; ++s) addRun(to + i, runs.from[s] + i, runs.values[s], count - i);
}

// Patches that are cut at the sides of an image are added one by one. Of the others, row `first` is the first one.
inline void addChannelGradients(const PatchSpike* spikes, Index count, const PixelPatches& patches, Index rows,
                                float* weights) {
  struct Whole {
    const PatchSpike* spike;
    Index first, end, out;  // rows of weights, and where the outputs of row 0 would begin
  };
  Whole whole[kMostOfChannel];
  for (Index start = 0; start < count; start += kMostOfChannel) {
    const Index stop = count < start + kMostOfChannel ? count : start + kMostOfChannel;
    Index found = 0, row = 0;
    for (const PatchSpike* spike = spikes + start; spike < spikes + stop; ++spike) {
      const PixelPatch& patch = patches.of_pixel[spike->pixel];
      if (patch.pixels == 0) continue;  // between the strides of a kernel of one pixel
      if (static_cast<Index>(patch.pixels) * patches.outputs_of_group == static_cast<Index>(patch.row)) {
        row = patch.row;
        const Index first = row == 0 ? 0 : static_cast<Index>(patch.weights) / row;
        whole[found++] = {spike, first, first + patch.rows, static_cast<Index>(patch.out) - first * patches.row};
      } else {
        eachRun(patches, spike->pixel, 0,
                [&](Index to, Index from, Index run) { addRun(weights + to, spike->g + from, spike->value, run); });
      }
    }
    for (Index r = 0; r < rows; ++r) {
      ChannelRuns runs;
      runs.count = 0;
      for (Index k = 0; k < found; ++k) {
        if (r < whole[k].first || r >= whole[k].end) continue;
        runs.from[runs.count] = whole[k].spike->g + (whole[k].out + r * patches.row);
        runs.values[runs.count++] = whole[k].spike->value;
      }
      addToRun(weights + r * row, runs, row);
    }
  }
}

inline void dotPatches(const std::uint32_t* ids, Index count, const PixelPatches& patches, const float* weights,
                       const float* g, float* out) {
  for (Index k = 0; k < count; ++k) {
    Floats sums[4] = {};  // as many additions are in flight
    eachRun(patches, ids[k], [&](Index weight, Index place, Index run) {
      const float *a = weights + weight, *b = g + place;
      Index i = 0;
      for (; i + 4 * kLanes <= run; i += 4 * kLanes) {
        SNNJAX_UNROLL
        for (int j = 0; j < 4; ++j) sums[j] += load(a + i + j * kLanes) * load(b + i + j * kLanes);
      }
      if (i + 2 * kLanes <= run) {
        sums[0] += load(a + i) * load(b + i);
        sums[1] += load(a + i + kLanes) * load(b + i + kLanes);
        i += 2 * kLanes;
      }
      if (i + kLanes <= run) {
        sums[2] += load(a + i) * load(b + i);
        i += kLanes;
      }
      if (i < run) sums[3] += loadPart(a + i, run - i) * loadPart(b + i, run - i);
    });
    out[k] = sumOf((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
}

}  // namespace snnjax::SNNJAX_ISA
