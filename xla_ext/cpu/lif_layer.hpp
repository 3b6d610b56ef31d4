// One layer of LIF neurons over all time steps, forward and backward.
//
// A thread takes a patch: some columns (neurons) of some samples, over all steps. A feed-forward layer is cut into
// column tiles, whose weights stay in the cache; a recurrent layer needs all its spikes in the next step and is cut
// into samples. Within a patch, one block of samples after the other runs over all steps, so that its state stays in
// the first-level cache.
#pragma once

#include <array>
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

// A constant of the neurons of a layer as an operand holds it: 1 number or one a neuron, or absent.
struct ConstantNumbers {
  Numbers numbers;
  Index count = 0;
};

// In the order of the fields of `SecondState` in snnjax/ops/_lif_layer.py, which is that of the operands.
enum class Coupling : std::int32_t { kWDecay, kWMembrane, kWGain, kWJump, kVCoupling, kThresholdCoupling };
inline constexpr std::size_t kNumCouplings = 6;
constexpr Summed summedOf(Coupling constant) {
  return static_cast<Summed>(static_cast<std::int32_t>(Summed::kWDecay) + static_cast<std::int32_t>(constant));
}
static_assert(summedOf(Coupling::kThresholdCoupling) == Summed::kThresholdCoupling);

// All of them. Without a threshold (a leaky integrator) nothing fires; without `w_decay` there is no second state.
struct GivenConstants {
  ConstantNumbers decay, gain, threshold, second_threshold;
  std::array<ConstantNumbers, kNumCouplings> couplings;
  Numbers bias;  // one a neuron
};

// The constants as float32, one a neuron, padded to whole words of neurons.
class LayerConstants {
 public:
  LayerConstants(Index neurons, const GivenConstants& given);

  NeuronConstants from(Index column) const;
  const float* bias() const { return has_bias_ ? row(kBias) : nullptr; }
  // What the recorded cotangents of the current are still to be multiplied with: the gain, unless the current reaches
  // both states.
  const float* outerGain() const { return row(has(Coupling::kWGain) ? kOnes : kGain); }
  bool has(Coupling constant) const { return has_coupling_[static_cast<std::size_t>(constant)]; }
  bool hasSecondState() const { return has(Coupling::kWDecay); }

 private:
  enum Row : Index { kDecay, kGain, kThreshold, kSecondThreshold, kBias, kOnes, kCouplings };

  float* row(Index index) const { return memory_.data() + index * padded_; }
  void fill(Index index, Index neurons, const ConstantNumbers& given, float padding);

  Index padded_;
  bool has_bias_;
  std::array<bool, kNumCouplings> has_coupling_{};
  Buffer<float> memory_;
};

struct Layer {
  Weights weights;
  Weights recurrent;  // its numbers are absent in a feed-forward layer
  LayerConstants constants;
  Reset reset;
  bool detach_reset;
  SurrogateForm surrogate;
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
  Numbers first_v, first_w, first_spikes;  // [batch, neurons]
  // Results. Those marked * may be absent.
  Numbers record;            // * membranes [steps, batch, neurons]; in bfloat16, see originOf
  float* record_w;           // * second states, likewise
  float* record_current;     // * currents, likewise
  Numbers last_v;            // [batch, neurons]
  Numbers last_w;            // * likewise
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
  Numbers first_v, first_w, first_spikes, record;
  const float* record_w;        // * [steps, batch, neurons]
  const float* record_current;  // * likewise
  const GivenBits& spikes;      // the listed spikes
  const GivenBits& listed;      // all listed neurons; empty: all
  Above above;
  std::vector<Numbers> g_spikes;                        // further cotangents of the spikes [steps, batch, neurons]
  Numbers g_counts, g_last_v, g_last_w, g_last_spikes;  // [batch, neurons]
  // Results. Those marked * may be absent.
  Numbers g_weights;                            // * as the weights
  Numbers g_recurrent;                          // * as the recurrent weights
  Numbers g_bias;                               // * [neurons]
  std::array<Numbers, kNumSummed> g_constants;  // * by `Summed`: [neurons]
  Numbers g_first_v;                            // [batch, neurons]
  Numbers g_first_w;                            // * likewise
  Numbers g_first_spikes;                       // * likewise
  bool keeps_g_v;                               // whether the layer below needs them
  Borrowed<float> g_v;                          // of the membranes [rows, g_v_stride], 0 behind the ends
  Index g_v_stride = 0;
};

inline const Numbers& cotangentOf(const LayerBackward& pass, Summed constant) {
  return pass.g_constants[static_cast<std::size_t>(constant)];
}

// Whether the gain's cotangent is a sum over the weights' products.
inline bool sumsGain(const LayerBackward& pass) {
  return cotangentOf(pass, Summed::kGain) && !pass.layer.constants.has(Coupling::kWGain);
}

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
