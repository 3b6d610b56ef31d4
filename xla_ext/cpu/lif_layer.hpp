// One layer of LIF neurons over all time steps, forward and backward.
//
// A thread takes a patch: some columns (neurons) of some samples, over all steps. A feed-forward layer is cut into
// column tiles, whose weights stay in the cache; a recurrent layer needs all its spikes in the next step and is cut
// into samples. Within a patch, one block of samples after the other runs over all steps, so that its state stays in
// the first-level cache.
#pragma once

#include <vector>

#include "extent.hpp"
#include "kernels.hpp"
#include "memory.hpp"
#include "numbers.hpp"
#include "parallel.hpp"
#include "products.hpp"
#include "spare_memory.hpp"
#include "spike_rows.hpp"
#include "transposed.hpp"

namespace snnjax {

// Samples of a block. Forward, few: the state of wide recurrent layers has to stay in the first-level cache. Backward,
// more: a chunk of rows is summed at once. Threads have whole blocks, and sums over samples are kept block by block, so
// that no result depends on the number of threads.
inline constexpr Index kForwardBlock = 8, kBackwardBlock = 16;
inline Index forwardBlocks(Index batch) { return (batch + kForwardBlock - 1) / kForwardBlock; }

// Whether an array with rows of (neurons + 7) / 8 bytes, the lowest bit first, is one of whole words.
inline bool areWords(const std::uint8_t* bytes, Index neurons) {
  return bytes != nullptr && neurons % 64 == 0 && reinterpret_cast<std::uintptr_t>(bytes) % sizeof(std::uint64_t) == 0;
}

// Spikes or other marks of neurons, a bit each, in rows of whole words that hold whatever was there before.
class Bits {
 public:
  Bits() = default;
  Bits(Index rows, Index neurons) : words_((neurons + 63) / 64), memory_(rows * words_), first_(memory_.data()) {}

  // In place of such an array of results; or, where that is not of whole words, in memory of their own.
  static Bits over(std::uint8_t* bytes, Index rows, Index neurons) {
    if (!areWords(bytes, neurons)) return Bits(rows, neurons);
    Bits bits;
    bits.words_ = neurons / 64;
    bits.first_ = reinterpret_cast<std::uint64_t*>(bytes);
    return bits;
  }

  Index words() const { return words_; }
  std::uint64_t* row(Index index) { return first_ + index * words_; }
  const std::uint64_t* row(Index index) const { return first_ + index * words_; }
  explicit operator bool() const { return first_ != nullptr; }

 private:
  Index words_ = 0;
  Borrowed<std::uint64_t> memory_;
  std::uint64_t* first_ = nullptr;
};

// Marks that are an operand, and so are not to be written: where they lie, or in whole words of their own.
class GivenBits {
 public:
  GivenBits() = default;
  GivenBits(const std::uint8_t* bytes, Index rows, Index neurons);

  Index words() const { return words_; }
  const std::uint64_t* row(Index index) const { return first_ + index * words_; }
  explicit operator bool() const { return first_ != nullptr; }

 private:
  Index words_ = 0;
  Bits copy_;
  const std::uint64_t* first_ = nullptr;
};

inline Index countBits(const std::uint64_t* bits, Index words) {
  Index count = 0;
  for (Index word = 0; word < words; ++word) count += countBits(bits[word]);
  return count;
}

// To an array of results; nothing is moved where the bits lie over it.
void writeBits(const Bits& from, Index rows, Index neurons, std::uint8_t* to);

// The constants of the neurons of a layer as float32, one a neuron, padded to whole words of neurons.
class LayerConstants {
 public:
  // Each array holds 1 number or one a neuron; an absent one (no threshold: a leaky integrator) never fires.
  LayerConstants(Index neurons, Numbers decay, Index decays, Numbers gain, Index gains, Numbers threshold,
                 Index thresholds, Numbers second_threshold, Index second_thresholds, Numbers bias);

  NeuronConstants from(Index column) const;
  const float* bias() const { return has_bias_ ? row(4) : nullptr; }
  const float* gain() const { return row(1); }

 private:
  float* row(Index index) const { return memory_.data() + index * padded_; }
  void fill(Index index, Index neurons, Numbers numbers, Index count, float padding);

  Index padded_;
  bool has_bias_;
  Buffer<float> memory_;
};

struct Layer {
  Weights weights;
  Weights recurrent;  // its numbers are absent in a feed-forward layer
  LayerConstants constants;
  Reset reset;
  bool detach_reset;
  Surrogate surrogate;
  Index capacity;  // -1: every neuron is listed

  Index neurons() const { return weights.outputs; }
  bool isRecurrent() const { return static_cast<bool>(recurrent.numbers); }
  bool isCapped() const { return capacity >= 0 && capacity < neurons(); }
  bool hasLists() const { return capacity >= 0; }
};

struct LayerForward {
  const Layer& layer;
  const SpikeRows& inputs;
  Extent extent;
  Numbers first_v, first_spikes;  // [batch, neurons]
  // Results. Those marked * may be absent.
  Numbers record;            // * membranes [steps, batch, neurons]; in bfloat16, see originOf
  Numbers last_v;            // [batch, neurons]
  Numbers last_spikes;       // * likewise
  float* counts;             // * true spikes [batch, neurons]
  std::int32_t* dropped;     // * [batch]
  std::int32_t* num_spikes;  // * true spikes of each row
  Bits& spikes;              // the listed spikes, one row per step and sample
  Bits near;                 // of a layer with lists: the listed neurons that do not spike
  SpikeLists* lists;         // of a recurrent layer: of `spikes`, a part for each block of samples
};

void runForward(LayerForward& pass, const Threads& threads);

// Rows of `neurons` numbers, padded with zeros to whole vectors; the numbers are whatever was there before.
Borrowed<float> borrowRows(Index rows, Index neurons, Index stride);
// How far apart such rows lie.
inline Index strideOf(Index neurons) {
  constexpr Index kWidestVector = 16;
  return roundUp(neurons, kWidestVector);
}

// What the layer above, or a read-out, sends back: g @ (weights * gain)^T.
struct Above {
  Weights weights;
  const float* gain;
  Rows<const float> g_v;  // [rows, neurons of the layer above]; data nullptr: nothing above
};

struct LayerBackward {
  const Layer& layer;
  const SpikeLists& inputs;
  Extent extent;
  Numbers first_v, first_spikes, record;
  const GivenBits& spikes;  // the listed spikes
  const GivenBits& listed;  // all listed neurons; empty: all
  Above above;
  std::vector<Numbers> g_spikes;              // further cotangents of the spikes [steps, batch, neurons]
  Numbers g_counts, g_last_v, g_last_spikes;  // [batch, neurons]
  // Results. Those marked * may be absent.
  Numbers g_weights;    // * as the weights
  Numbers g_recurrent;  // * as the recurrent weights
  Numbers g_bias;       // * [neurons]
  Numbers g_decay;      // * [neurons], likewise the next two
  Numbers g_threshold;
  Numbers g_gain;
  Numbers g_first_v;       // [batch, neurons]
  Numbers g_first_spikes;  // * likewise
  bool keeps_g_v;          // whether the layer below needs them
  Borrowed<float> g_v;     // of the membranes [rows, g_v_stride], 0 behind the ends
  Index g_v_stride = 0;
};

void runBackward(LayerBackward& pass, const Threads& threads);

// The weight gradient of a layer from the cotangents of its membranes, times `gain`; adds what reaches the gain.
struct WeightGradient {
  const TransposedSpikes& spikes;
  Rows<const float> g_v;
  Weights weights, g_weights;
  const float* gain;
  double* sum_gain;  // [neurons]; nullptr: not needed
};
// Chunks of rows of a weight gradient.
Chunking chunksOf(const Extent& extent);
void computeWeightGradient(const WeightGradient& of, const Threads& threads);
// Of columns [first, first + columns), from the products summed without the gain.
void finishWeightGradient(const PackedWeights& sums, Index first, Index columns, const WeightGradient& of);

}  // namespace snnjax
