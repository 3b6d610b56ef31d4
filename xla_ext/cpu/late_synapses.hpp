// Recurrent synapses with a delay each, on top of the one step that recurrent spikes always take: what they bring while
// a block of samples runs over time, how cotangents come back, and the gradients after all steps.
//
// What is to arrive at a target lies in a line of slots, one for each step, and both shares of a synapse side by side.
// A line has half as many slots more than may be under way, through which a step moves on; at its end, what is under
// way is moved back to the other one.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "delayed_shares.hpp"
#include "delays.hpp"
#include "products.hpp"

namespace snnjax {

// The synapses of a layer.
class LateSynapses {
 public:
  // Those given, or between all pairs of neurons; weights and delays are one for each.
  LateSynapses(const std::optional<Synapses>& given, Index neurons, const Numbers& weights, const float* delays,
               Index longest);

  Index neurons() const { return all_.neurons; }
  Index longest() const { return longest_; }
  Index count() const { return all_.count; }
  DelayedSynapses over(Index steps, Index batch) const {
    return {all_, weights_.data(), delays_, steps, batch, longest_};
  }
  // Slots that may be under way, and those of a line.
  Index window() const { return std::max<Index>(longest_, 1) + 1; }
  Index slots() const { return roundUp(window() + window() / 2, 16); }

 private:
  Borrowed<std::int32_t> ends_, targets_;  // of all pairs
  Synapses all_;
  std::vector<float> weights_;
  const float* delays_;
  Index longest_;
};

// Of each synapse whose target exists, where in the lines it adds its two shares; by neuron.
class LateShares {
 public:
  explicit LateShares(const LateSynapses& of);

  const LateSynapses& of() const { return of_; }
  // Adds what a neuron sends, times a value, to lines from a step's slot on.
  void add(Index neuron, float value, float* lines) const;

 private:
  using Pair = float __attribute__((vector_size(2 * sizeof(float))));

  const LateSynapses& of_;
  std::vector<Index> starts_;        // [neurons + 1]
  Borrowed<std::uint32_t> places_;   // of the first share, in the lines of all targets
  Borrowed<Pair> shares_;
};

// What is to arrive at the neurons of a block of samples.
class ArrivingLines {
 public:
  ArrivingLines(const LateShares& shares, Index samples);

  // Starts samples [first, first + samples) of a batch, with rows of what arrives in the first steps.
  void begin(const UnderWay& arriving, Index batch, Index first, Index samples);
  // Goes on to a step, to which nothing can be sent from before it any more.
  void reach(Index step);
  void send(Index sample, const SpikeRow& spikes);
  // current += what arrives in this step.
  void addTo(Index sample, float* current) const;
  // Writes what arrives from this step on as a sample of a state.
  void write(Index sample, Index batch, const WritableNumbers& to) const;

 private:
  float* lines(Index sample) { return lines_.data() + sample * size_; }
  const float* lines(Index sample) const { return lines_.data() + sample * size_; }

  const LateShares& shares_;
  const Index window_, slots_, size_;  // size: of the lines of a sample
  Index samples_, first_ = 0, step_ = 0, now_ = 0;
  Buffer<float> lines_;  // [samples, neurons, slots]
};

// The cotangents of all that arrives, and of the last state's: [steps and the longest delay, batch, neurons].
class LateCotangents {
 public:
  // `left` are those of what has not arrived at the end of each sample; `gain` is [neurons].
  LateCotangents(const LateSynapses& of, const Extent& extent, const UnderWay& left, const float* gain);

  const LateSynapses& of() const { return of_; }
  const Extent& extent() const { return extent_; }
  const SharesOfNeurons& shares() const { return *shares_; }
  // Of a sample in a step, from those of its membrane, which count until its end.
  const float* take(Index step, Index sample, const float* g_v);
  // Those of what arrived in the first steps as a state had it.
  void writeFirst(Index rows, const WritableNumbers& to) const;
  // The gradients by `sent`, the spikes that come back in each step; either may be absent.
  void correlate(const RowSource& sent, const WritableNumbers& g_weights, const WritableNumbers& g_delays,
                 const Threads& threads) const;

 private:
  const LateSynapses& of_;
  const Extent extent_;
  const UnderWay left_;
  const float* gain_;
  std::unique_ptr<SharesOfNeurons> shares_;
  Borrowed<float> rows_;
};

// What synapses send back to the neurons of a block of samples, from the last step to the first. Of a neuron all samples
// lie side by side, in each slot of its line.
class LateCollector {
 public:
  LateCollector(LateCotangents& of, Index samples, Index width);

  void begin(Index first, Index samples);
  // out[r] are the cotangents of the spikes that come back in a step, from its membranes'.
  void collect(Index step, Rows<const float> g_v, Rows<float> out);

 private:
  void put(Index step, Rows<const float> g_v);

  LateCotangents& of_;
  const Index width_, lanes_, window_, slots_;  // lanes: samples of whole vectors
  Index first_ = 0, samples_ = 0, now_ = 0;
  Buffer<float> lines_;      // [width, slots, lanes]
  Buffer<float> row_, sums_;  // [samples, width] and [width, lanes]
};

}  // namespace snnjax
