// One layer of LIF neurons over all time steps, forward and backward.
//
// A thread takes a patch: some columns (neurons) of some samples, over all steps. A feed-forward layer is divided into
// column tiles, whose weights stay in the cache; a recurrent layer needs all its spikes in the next step and is divided
// by samples. Within a patch, one block of samples after the other runs over all steps, so that its state stays in the
// first-level cache.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "connection.hpp"
#include "cpu/kernels.hpp"
#include "cpu/lists/marks.hpp"
#include "cpu/lists/spike_rows.hpp"
#include "cpu/memory.hpp"
#include "cpu/numbers.hpp"
#include "cpu/parallel.hpp"
#include "cpu/products/products.hpp"
#include "recurrent_synapses.hpp"
#include "synaptic_delays.hpp"

namespace snnjax {

// Samples of a block. Forward, few: the state of wide recurrent layers has to stay in the first-level cache. Backward,
// more: a chunk of rows is summed at once. Threads have whole blocks, and sums over samples are kept block by block, so
// that no result depends on the number of threads.
inline constexpr Index kForwardBlock = 8, kBackwardBlock = 16;
inline Index forwardBlocks(Index batch) { return (batch + kForwardBlock - 1) / kForwardBlock; }

// Chunks of rows of a weight gradient: of so many rows that a tile of 64 columns of their cotangents takes half a
// megabyte of the second-level cache.
inline Chunking chunksOf(const Extent& extent) {
  constexpr Index kRows = 2048;
  return {extent, kBackwardBlock, std::max<Index>(kRows / kBackwardBlock, 1)};
}

// A neuron constant of a layer as an operand: one number, one per neuron, or absent.
struct ConstantNumbers {
  Numbers numbers;
  Index count = 0;
};

// In the order of the fields of `SecondState` in snnjax/ops/_lif_network/records.py, which is that of the operands.
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
  Numbers bias;            // one a neuron
  ConstantNumbers factor;  // of given currents
};

// The constants as float32, one a neuron, padded to whole words of neurons.
class LayerConstants {
 public:
  // `shares_weights`: its neurons share weights, as after a convolution.
  LayerConstants(Index neurons, const GivenConstants& given, bool shares_weights)
      : padded_(roundUp(std::max<Index>(neurons, 1), kWord)),
        has_bias_(given.bias),
        has_factor_(given.factor.numbers),
        shares_weights_(shares_weights),
        memory_((kCouplings + (given.couplings[0].numbers ? static_cast<Index>(kNumCouplings) : 0)) * padded_) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    fill(kDecay, neurons, given.decay, 0.0F);
    fill(kGain, neurons, given.gain, 0.0F);
    fill(kThreshold, neurons, given.threshold, kInfinity);
    fill(kSecondThreshold, neurons, given.second_threshold, kInfinity);
    fill(kBias, neurons, {given.bias, neurons}, 0.0F);
    fill(kFactor, neurons, given.factor, 0.0F);
    std::fill_n(row(kOnes), padded_, 1.0F);
    for (std::size_t i = 0; given.couplings[0].numbers && i < kNumCouplings; ++i) {
      has_coupling_[i] = static_cast<bool>(given.couplings[i].numbers);
      fill(kCouplings + static_cast<Index>(i), neurons, given.couplings[i], 0.0F);
    }
  }

  NeuronConstants from(Index column) const {
    const auto coupling = [&](Coupling constant) {
      return has(constant) ? row(kCouplings + static_cast<Index>(constant)) + column : nullptr;
    };
    return {
        .decay = row(kDecay) + column,
        .gain = row(kGain) + column,
        .threshold = row(kThreshold) + column,
        .second_threshold = row(kSecondThreshold) + column,
        .w_decay = coupling(Coupling::kWDecay),
        .w_membrane = coupling(Coupling::kWMembrane),
        .w_gain = coupling(Coupling::kWGain),
        .w_jump = coupling(Coupling::kWJump),
        .v_coupling = coupling(Coupling::kVCoupling),
        .threshold_coupling = coupling(Coupling::kThresholdCoupling),
    };
  }
  const float* bias() const { return has_bias_ ? row(kBias) : nullptr; }
  const float* factor() const { return has_factor_ ? row(kFactor) : nullptr; }
  // The factor still missing from the recorded cotangents of the current: the gain, unless the current reaches both
  // states or shared weights need them without it.
  const float* outerGain() const { return row(has(Coupling::kWGain) || shares_weights_ ? kOnes : kGain); }
  // Whether a step's cotangents of the current are multiplied by the gain before they are recorded.
  bool takesGainInside() const { return shares_weights_ && !has(Coupling::kWGain); }
  bool has(Coupling constant) const { return has_coupling_[static_cast<std::size_t>(constant)]; }
  bool hasSecondState() const { return has(Coupling::kWDecay); }

 private:
  enum Row : Index { kDecay, kGain, kThreshold, kSecondThreshold, kBias, kFactor, kOnes, kCouplings };

  static constexpr Index kWord = 64;

  float* row(Index index) { return memory_.data() + index * padded_; }
  const float* row(Index index) const { return memory_.data() + index * padded_; }
  void fill(Index index, Index neurons, const ConstantNumbers& given, float padding) {
    std::fill_n(row(index), padded_, padding);
    if (!given.numbers || neurons == 0) return;
    if (given.count == 1) {
      given.numbers.read(0, 1, row(index));
      std::fill_n(row(index), neurons, row(index)[0]);
    } else {
      given.numbers.read(0, neurons, row(index));
    }
  }

  Index padded_;
  bool has_bias_, has_factor_, shares_weights_;
  std::array<bool, kNumCouplings> has_coupling_{};
  Buffer<float> memory_;
};

struct Layer {
  Weights weights;    // from what reaches them, pooled or not, to the neurons; read as dense ones without a convolution
  bool has_currents;  // instead of weights: what comes in are its currents
  Weights recurrent;  // its numbers are absent in a feed-forward layer, and where one of the next two is given
  LayerConstants constants;
  Reset reset;
  bool detach_reset;
  SurrogateForm surrogate;
  Index capacity;                                  // -1: every neuron is listed
  std::shared_ptr<const Delays> delays;            // may be absent, as the next five
  std::shared_ptr<const Delays> recurrent_delays;  // with the one step that recurrent spikes always take
  std::shared_ptr<const RecurrentSynapses> synapses;
  std::shared_ptr<const SynapticDelays> synaptic_delays;
  std::shared_ptr<const Windows> pooling;
  std::shared_ptr<const PackedConvolution> convolution;

  Index neurons() const { return weights.outputs; }
  bool isRecurrent() const { return recurrent.numbers || synapses != nullptr || synaptic_delays != nullptr; }
  bool hasLists() const { return capacity >= 0; }
};

// Given currents as the neurons [column, column + columns) receive them; `place` is that of the first one.
inline void readCurrents(const Layer& layer, const Numbers& given, Index place, Index column, Index columns,
                         float* out) {
  const float *factor = layer.constants.factor(), *bias = layer.constants.bias();
  if (given.is_bfloat16) given.read(place, columns, out);
  kernels().affine(given.is_bfloat16 ? out : given.float32() + place, factor == nullptr ? nullptr : factor + column,
                   bias == nullptr ? nullptr : bias + column, columns, out);
}

// How many columns one thread takes at a time behind a convolution or given currents: tiles of even size, at least two.
inline Index evenTile(Index columns, Index least, Index most) {
  const Index tiles = roundUp(std::max<Index>((columns + most - 1) / most, 1), 2);
  return std::clamp(roundUp((columns + tiles - 1) / tiles, 64), least, most);
}

// How many columns of a feed-forward layer one thread takes at a time; `more` rows of weights beside its own. Behind a
// convolution at most `convolved`: few enough that the state of a block of samples stays in the second-level cache, and
// many, because a spike near the border of a tile is read for both.
inline Index columnsOfTile(const Layer& layer, Index convolved, Index more = 0) {
  constexpr Index kLeastConvolved = 1024;
  if (layer.convolution != nullptr) return evenTile(layer.neurons(), kLeastConvolved, convolved);
  // No weights take the cache: the wider, the longer the rows that are read at once.
  if (layer.has_currents && more == 0) return evenTile(layer.neurons(), 64, kLeastConvolved);
  // Four rows of int8 weights take the place of one of float32.
  const Index rows = layer.weights.isInt8() ? roundUp(layer.weights.inputs, 4) / 4 : layer.weights.inputs;
  return columnsOfTile(layer.neurons(), rows + more);
}

struct LayerForward {
  const Layer& layer;
  const SpikeRows* inputs;  // nullptr where currents are given
  Numbers currents;         // * [steps, batch, neurons]
  Extent extent;
  Numbers first_v, first_w, first_spikes;  // [batch, neurons]
  UnderWay first_under_way;                // of delayed recurrent spikes
  UnderWay first_arriving;                 // through synapses with delays
  // Results. Those marked * may be absent.
  WritableNumbers record;         // * membranes [steps, batch, neurons]; in bfloat16, see originOf
  WritableNumbers listed_record;  // * those of listed neurons by ascending id, then 0 [steps, batch, capacity]
  float* record_current;          // * currents, likewise
  WritableNumbers last_v;         // [batch, neurons]
  WritableNumbers last_w;         // * likewise
  WritableNumbers last_spikes;    // * likewise
  WritableNumbers last_arriving;  // * through synapses with delays
  float* counts;                  // * true spikes [batch, neurons]
  std::int32_t* dropped;          // * [batch]
  std::int32_t* num_spikes;       // * true spikes of each row
  Bits& spikes;                   // the listed spikes, one row per step and sample
  Bits near;                      // of a layer with lists: the listed neurons that do not spike
  SpikeLists* lists;              // of a recurrent layer: of `spikes`, a part for each block of samples
  std::unique_ptr<const SynapticShares> shares = {};  // of a layer with synaptic delays
};

void runForward(LayerForward& pass, const Threads& threads);

// Rows of numbers, padded with zeros to whole vectors, in memory of their own or in that of a result.
class KeptRows {
 public:
  KeptRows() = default;
  explicit KeptRows(Rows<float> given) : rows_(given) {}
  // Whatever was there before.
  KeptRows(Index rows, Index numbers) : KeptRows(Borrowed<float>(rows * strideOf(numbers)), strideOf(numbers)) {
    for (Index r = 0; rows_.stride > numbers && r < rows; ++r) {
      std::fill(rows_.row(r) + numbers, rows_.row(r + 1), 0.0F);
    }
  }
  KeptRows(Borrowed<float> memory, Index stride) : memory_(std::move(memory)), rows_{memory_.data(), stride} {}

  Rows<float> rows() const { return rows_; }
  Rows<const float> asConst() const { return {rows_.data, rows_.stride}; }
  explicit operator bool() const { return rows_.data != nullptr; }

 private:
  Borrowed<float> memory_;
  Rows<float> rows_{nullptr, 0};
};

// What the layer above, or a readout, sends back: g @ (weights * gain)^T.
struct Above {
  Weights weights;
  const float* gain;
  Rows<const float> g_v;  // [rows, neurons of the layer above]; data nullptr: nothing above
  bool rounds = false;    // both may be rounded to bfloat16 before they are multiplied
  // But not for neurons whose membrane is nearer than this to the threshold; 0: for all.
  float exact_within = 0.0F;
};

struct LayerBackward {
  const Layer& layer;
  const SpikeLists& inputs;
  const Delays* split;  // whose shares are separate in `inputs`, for their cotangents; may be absent
  Numbers currents;     // * that were given, [steps, batch, neurons]
  Extent extent;
  Numbers first_v, first_w, first_spikes;
  UnderWay first_under_way, g_last_under_way;  // of delayed recurrent spikes
  UnderWay g_last_arriving;                    // through synapses with delays
  // Membranes as recorded: of all neurons, or only of those listed; those that follow from given currents alone are
  // computed again.
  Numbers record, listed_record;
  const float* record_current;  // * [steps, batch, neurons]
  bool needs_w;                 // whether the second states are: they are computed again
  const GivenBits& spikes;      // the listed spikes
  const GivenBits& listed;      // all listed neurons; empty: all
  Above above;
  SentBack sent;                                        // instead of `above`: what a pooling or convolution sends
  Numbers g_spikes;                                     // * further cotangents of the spikes [steps, batch, neurons]
  Numbers g_counts, g_last_v, g_last_w, g_last_spikes;  // [batch, neurons]
  // Results. Those marked * may be absent.
  WritableNumbers g_currents;                           // * of given ones [steps, batch, neurons]
  WritableNumbers g_weights;                            // * as the weights
  WritableNumbers g_recurrent;                          // * as the recurrent weights
  WritableNumbers g_recurrent_delays;                   // * [neurons]
  WritableNumbers g_synaptic_delays;                    // * as the recurrent weights
  WritableNumbers g_bias;                               // * [neurons]
  WritableNumbers g_factor;                             // * of given currents: [neurons]
  WritableNumbers g_delays;                             // * [inputs], only where they are split
  std::array<WritableNumbers, kNumSummed> g_constants;  // * by `Summed`: [neurons]
  WritableNumbers g_first_v;                            // [batch, neurons]
  WritableNumbers g_first_w;                            // * likewise
  WritableNumbers g_first_spikes;                       // * likewise
  WritableNumbers g_first_earlier;                      // * of delayed recurrent spikes before those
  Index earlier_rows;                                   // of them
  WritableNumbers g_first_arriving;                     // * through synapses with delays
  Index arriving_rows;                                  // of them
  bool keeps_g_v;                                       // whether the layer below needs them
  KeptRows g_v;                                         // of the membranes [rows, neurons], 0 past the ends
  Borrowed<std::int32_t> slots = {};  // where `listed_record` has the first neuron of a word of a row [words, rows]
  std::unique_ptr<const CollectingSynapses> collecting = {};     // of a layer with `synapses`
  std::unique_ptr<SynapticCotangents> synaptic_cotangents = {};  // of a layer with synaptic delays
  KeptRows arrived = {};  // the cotangents of what arrives through them [rows, neurons], where delays need these
};

// Samples that a thread takes together. Larger blocks are faster, above all where cotangents are collected through
// synapses with delays, but a small batch of a recurrent layer is to keep several cores busy. Blocks do not depend on
// the number of threads, so no bit does.
inline Index backwardBlock(const LayerBackward& pass) {
  const Layer& layer = pass.layer;
  const Index batch = pass.extent.batch, longest = longestCollected(kernels().lanes);
  Index most = kBackwardBlock;
  if (layer.synaptic_delays != nullptr && batch >= 2 * longest) most = longest;
  if (layer.recurrent.numbers && batch <= kBackwardBlock) most = kForwardBlock;
  return std::clamp<Index>(batch, 1, most);
}

// Whether membranes are computed again.
inline bool computesAgain(const LayerBackward& pass) {
  return pass.currents && !pass.layer.isRecurrent() && !pass.record && !pass.listed_record;
}

inline const WritableNumbers& cotangentOf(const LayerBackward& pass, Summed constant) {
  return pass.g_constants[static_cast<std::size_t>(constant)];
}

// Whether the gain's cotangent is a sum over the weights' products.
inline bool sumsGain(const LayerBackward& pass) {
  const bool has_products =
      pass.layer.convolution == nullptr && !pass.layer.has_currents && pass.layer.synaptic_delays == nullptr;
  return cotangentOf(pass, Summed::kGain) && !pass.layer.constants.has(Coupling::kWGain) && has_products;
}

void runBackward(LayerBackward& pass, const Threads& threads);

}  // namespace snnjax
