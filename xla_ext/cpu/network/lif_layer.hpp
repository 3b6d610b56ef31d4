// One layer of LIF neurons over all time steps, forward and backward.
//
// A thread takes a patch: some columns (neurons) of some samples, over all steps. A feed-forward layer is divided into
// column tiles, whose weights stay in the cache; a recurrent layer needs all its spikes in the next step and is divided
// by samples. Within a patch, one block of samples after the other runs over all steps, so that its state stays in the
// first-level cache.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "connection.hpp"
#include "cpu/call.hpp"
#include "cpu/kernels.hpp"
#include "cpu/lists/marks.hpp"
#include "cpu/lists/spike_rows.hpp"
#include "cpu/memory.hpp"
#include "cpu/numbers.hpp"
#include "cpu/parallel.hpp"
#include "cpu/products/products.hpp"
#include "listed_cotangents.hpp"
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

// The constants of a layer as float32, one a neuron, padded to whole words of neurons. Without a threshold (a leaky
// integrator) nothing fires; without `w_decay` there is no second state.
class PaddedConstants {
 public:
  // `shares_weights`: its neurons share weights, as after a convolution.
  PaddedConstants(Index neurons, const lif_network::LayerConstants<Operand>& given,
                  const lif_network::Weighted<Operand>& linear, Index group, bool shares_weights)
      : padded_(roundUp(std::max<Index>(neurons, 1), kWord)),
        has_bias_(linear.bias),
        has_factor_(linear.factor),
        shares_weights_(shares_weights),
        memory_((kFirst + (given.glif.second_state.w_decay ? kGlifConstants : kPlain)) * padded_) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    std::fill_n(row(kOnes), padded_, 1.0F);
    fill(kSecondThreshold, neurons, given.second_threshold, group, kInfinity);
    if (has_bias_) fill(kBias, neurons, linear.bias, group, 0.0F);
    if (has_factor_) fill(kFactor, neurons, linear.factor, group, 0.0F);
    for (unsigned i = 0; i < (given.glif.second_state.w_decay ? kGlifConstants : kPlain); ++i) {
      const Operand& constant = given.glif.at(i);
      has_.at(i) = i < kPlain || constant;
      fill(kFirst + i, neurons, constant, group, i == Threshold ? kInfinity : 0.0F);
    }
  }

  NeuronConstants from(Index column) const {
    NeuronConstants constants{};
    constants.second_threshold = row(kSecondThreshold) + column;
    for (unsigned i = 0; i < kGlifConstants; ++i) constants.at(i) = has_.at(i) ? row(kFirst + i) + column : nullptr;
    return constants;
  }
  const float* bias() const { return has_bias_ ? row(kBias) : nullptr; }
  const float* factor() const { return has_factor_ ? row(kFactor) : nullptr; }
  // The factor still missing from the recorded cotangents of the current: the gain, unless the current reaches both
  // states or shared weights need them without it.
  const float* outerGain() const { return row(has_.second_state.w_gain || shares_weights_ ? kOnes : kFirst + Gain); }
  // Whether a step's cotangents of the current are multiplied by the gain before they are recorded.
  bool takesGainInside() const { return shares_weights_ && !has_.second_state.w_gain; }
  const GLIFConstants<bool>& has() const { return has_; }
  bool hasSecondState() const { return has_.second_state.w_decay; }

 private:
  // Rows; from the first one on by GlifConstant, in plain LIF without those of a second state.
  static constexpr unsigned kSecondThreshold = 0, kBias = 1, kFactor = 2, kOnes = 3, kFirst = 4, kPlain = WDecay;
  static constexpr Index kWord = 64;

  float* row(unsigned index) { return memory_.data() + index * padded_; }
  const float* row(unsigned index) const { return memory_.data() + index * padded_; }
  // With one number, one a neuron, or none.
  void fill(unsigned index, Index neurons, const Operand& given, Index group, float padding) {
    const Index filled = given ? neurons : 0;
    std::fill_n(row(index) + filled, padded_ - filled, padding);
    if (filled == 0) return;
    const bool is_shared = given.length(0) == 1;
    given.numbers(group).read(0, is_shared ? 1 : neurons, row(index));
    if (is_shared) std::fill_n(row(index), neurons, row(index)[0]);
  }

  Index padded_;
  bool has_bias_, has_factor_, shares_weights_;
  GLIFConstants<bool> has_{};
  Borrowed<float> memory_;  // filled row by row
};

struct Layer {
  Weights weights;    // from what reaches them, pooled or not, to the neurons; read as dense ones without a convolution
  bool has_currents;  // instead of weights: what comes in are its currents
  Weights recurrent;  // its numbers are absent in a feed-forward layer, and where one of the next two is given
  PaddedConstants constants;
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

// Whether these columns of given currents can be read where they lie, in whole vectors.
inline bool areReadInPlace(const Numbers& given, Index columns) {
  return !given.is_bfloat16 && columns % kernels().lanes == 0;
}

// Whether so many steps of given currents are taken at once. With AVX2, whose vectors are half a cache line, a training
// step of a VGG took a twentieth to a tenth longer so.
inline bool takesStepsAtOnce(Index steps) {
  return steps <= kMostStepsAtOnce && kernels().lanes * static_cast<Index>(sizeof(float)) >= Index{kCacheLine};
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

// Of a layer's recurrent spikes, those under way before a step or after it, the last of which have a row of their own,
// and what is to arrive through synapses with delays. A state has no numbers without rows.
inline Index earlierRows(const Layer& layer) { return layer.recurrent_delays->rows() - 1; }
inline UnderWay recurrentUnderWay(const Layer& layer, const lif_network::LayerState<Numbers>& state) {
  return {state.earlier_spikes, state.earlier_spikes ? earlierRows(layer) : 0, state.spikes};
}
inline UnderWay recurrentArriving(const Layer& layer, const lif_network::LayerState<Numbers>& state) {
  return {state.arriving, state.arriving ? layer.synaptic_delays->longest() : 0};
}

struct LayerForward {
  const Layer& layer;
  const SpikeRows* inputs;  // nullptr where currents are given
  Numbers currents;         // * [steps, batch, neurons]
  Extent extent;
  lif_network::LayerState<Numbers> first;
  // Results. Those marked * may be absent, and so may those of the state.
  WritableNumbers record;         // * membranes [steps, batch, neurons]; in bfloat16, see originOf
  WritableNumbers listed_record;  // * those of listed neurons by ascending id, then 0 [steps, batch, capacity]
  float* record_current;          // * currents, likewise
  lif_network::LayerState<WritableNumbers> last;
  float* counts;             // * true spikes [batch, neurons]
  std::int32_t* dropped;     // * [batch]
  std::int32_t* num_spikes;  // * true spikes of each row
  Bits& spikes;              // the listed spikes, one row per step and sample
  Bits near;                 // of a layer with lists: the listed neurons that do not spike
  SpikeLists* lists;         // of a recurrent layer: of `spikes`, a part for each block of samples
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
  lif_network::LayerState<Numbers> first, g_last;
  // Membranes as recorded: of all neurons, or only of those listed; those that follow from given currents alone are
  // computed again.
  Numbers record, listed_record;
  const float* record_current;  // * [steps, batch, neurons]
  bool needs_w;                 // whether the second states are: they are computed again
  const GivenBits& spikes;      // the listed spikes
  const GivenBits& listed;      // all listed neurons; empty: all
  Above above;
  SentBack sent;                                    // instead of `above`: what a pooling or convolution sends
  Numbers g_spikes;                                 // * further cotangents of the spikes [steps, batch, neurons]
  std::unique_ptr<const ListedCotangents> g_lists;  // * or of recorded lists
  Numbers g_counts;                                 // [batch, neurons]
  // Results. Those marked * may be absent.
  WritableNumbers g_currents;                  // * of given ones [steps, batch, neurons]
  WritableNumbers g_weights;                   // * as the weights
  WritableNumbers g_recurrent;                 // * as the recurrent weights
  WritableNumbers g_recurrent_delays;          // * [neurons]
  WritableNumbers g_synaptic_delays;           // * as the recurrent weights
  WritableNumbers g_bias;                      // * [neurons]
  WritableNumbers g_factor;                    // * of given currents: [neurons]
  WritableNumbers g_delays;                    // * [inputs], only where they are split
  GLIFConstants<WritableNumbers> g_constants;  // * [neurons]
  lif_network::LayerState<WritableNumbers> g_first;
  bool keeps_g_v;                     // whether the layer below needs them
  KeptRows g_v;                       // of the membranes [rows, neurons], 0 past the ends
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

// Whether the gain's cotangent is a sum over the weights' products.
inline bool sumsGain(const LayerBackward& pass) {
  const bool has_products =
      pass.layer.convolution == nullptr && !pass.layer.has_currents && pass.layer.synaptic_delays == nullptr;
  return pass.g_constants.gain && !pass.layer.constants.has().second_state.w_gain && has_products;
}

void runBackward(LayerBackward& pass, const Threads& threads);

}  // namespace snnjax
