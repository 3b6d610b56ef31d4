// Recurrent synapses with a delay each, on top of the one step that recurrent spikes always take: what they bring while
// a block of samples runs over time, how cotangents come back, and the gradients after all steps.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "cpu/delays/delayed_synapses.hpp"
#include "cpu/delays/delays.hpp"

namespace snnjax {

// The synapses of a layer.
class SynapticDelays {
 public:
  // Those given, or between all pairs of neurons; weights and delays are one for each.
  SynapticDelays(const std::optional<Synapses>& given, Index neurons, const Numbers& weights, const float* delays,
                 Index longest);

  Index neurons() const { return all_.neurons; }
  Index longest() const { return longest_; }
  Index count() const { return all_.count; }
  // Steps in which a synapse may begin to bring its two shares, the later of them in the step behind.
  Index taps() const { return std::max<Index>(longest_, 1); }
  DelayedSynapses over(Index steps, Index batch) const {
    return {all_, weights_.data(), delays_, steps, batch, longest_};
  }
  // Calls visit(neuron, target, whole, now, next) for each synapse whose target exists, neuron by neuron.
  template <typename Visit>
  void each(Visit visit) const;

 private:
  Borrowed<std::int32_t> ends_, targets_;  // of all pairs
  Synapses all_;
  Borrowed<float> weights_;
  const float* delays_;
  Index longest_;
};

// Two numbers for two steps, side by side: what a synapse adds at once.
using StepPair = float __attribute__((vector_size(2 * sizeof(float))));

// What each neuron sends: where in rows of pairs, of all targets and one for each step, and the shares.
class SynapticShares {
 public:
  explicit SynapticShares(const SynapticDelays& of);

  const SynapticDelays& of() const { return of_; }
  // rows += what a neuron sends, times a value, from the row of a step on.
  void add(Index neuron, float value, StepPair* rows) const;

 private:
  const SynapticDelays& of_;
  std::vector<Index> ends_;  // [neurons]
  Borrowed<std::uint32_t> places_;
  Borrowed<StepPair> shares_;
};

// What is to arrive at the neurons of a block of samples: rows of pairs, the first number of a pair in the step of its
// row, the second one in the next step. There are twice as many rows as spikes may reach; a step moves on through them,
// and back to the first ones at their end.
class ArrivingPairs {
 public:
  ArrivingPairs(const SynapticShares& shares, Index samples);

  // Starts samples [first, first + samples) of a batch, with rows of what arrives in the first steps.
  void begin(const UnderWay& arriving, Index batch, Index first, Index samples);
  // Goes on to the next step.
  void advance();
  // Adds what a sample sends, which arrives from this step on.
  void send(Index sample, const SpikeRow& spikes);
  // current += what arrives in this step.
  void addTo(Index sample, float* current) const;
  // Writes what arrives from this step on to the rows of a state.
  void write(Index sample, Index batch, const WritableNumbers& to) const;

 private:
  // The row of a step, as many later than this one.
  StepPair* row(Index sample, Index later) { return pairs_.data() + sample * size_ + (now_ + later) * neurons_; }
  const StepPair* row(Index sample, Index later) const {
    return pairs_.data() + sample * size_ + (now_ + later) * neurons_;
  }
  void addArriving(Index sample, Index later, float* to) const;

  const SynapticShares& shares_;
  const Index neurons_, reach_, size_;  // rows that spikes may reach besides that of this step; pairs of a sample
  Index samples_, first_ = 0, now_ = 1;
  Buffer<StepPair> pairs_;  // [samples, rows, neurons]
};

// Synapses as their senders collect through them, in levels by how many steps do so at once, since nothing that they
// bring arrives within these: 1, 2 and 4. They come in blocks of targets whose lines stay in a cache meanwhile.
class CollectingShares {
 public:
  static constexpr Index kLevels = 3, kMostSteps = 4;

  // Rows are slots in the lines of all targets, and count from the step from which all synapses of a level collect.
  CollectingShares(const SynapticDelays& of, Index slots);

  static Index steps(Index level) { return Index{1} << level; }
  SenderShares of(Index level) const;

 private:
  struct Block {
    Index synapses = 0, runs = 0, last = -1;  // last: its latest sender
  };
  void reserve(std::vector<Block>& blocks, const std::array<Index, kLevels + 1>& firsts);

  std::array<Block, kLevels + 1> starts_;  // what lies before a level
  Borrowed<SenderRun> runs_;
  Borrowed<std::uint32_t> rows_;
  Borrowed<float> now_, next_;
};

// The cotangents of all that arrives, and of the last state's: [steps and the longest delay, batch, neurons].
class SynapticCotangents {
 public:
  // `left` are those of what has not arrived at the end of each sample; `gain` is [neurons].
  SynapticCotangents(const SynapticDelays& of, const Extent& extent, const UnderWay& left, const float* gain);

  // Of some samples in a step, from those of their membranes, which count until the end of each. Whole vectors may be
  // read of each row.
  Rows<const float> take(Index step, Index first, Index samples, Rows<const float> g_v);
  // Those of what arrived in the first steps as a state had it.
  void writeFirst(Index rows, const WritableNumbers& to) const;
  // The gradients by `sent`, the spikes that come back in each step; either may be absent.
  void correlate(const RowSource& sent, const WritableNumbers& g_weights, const WritableNumbers& g_delays,
                 const Threads& threads) const;

 private:
  friend class SynapticCollector;

  // Steps of a line, through which a step moves down, and what may be under way back to the end.
  Index slots() const { return 2 * (of_.taps() + 1); }

  const SynapticDelays& of_;
  const Extent extent_;
  const UnderWay left_;
  const float* gain_;
  const CollectingShares shares_;
  Borrowed<float> rows_;
};

// What synapses send back to the neurons of some samples, `longestCollected` at most, from the last step to the first.
class SynapticCollector {
 public:
  SynapticCollector(SynapticCotangents& of, Index samples, Index width);

  void begin(Index first, Index samples);
  // out[r] are the cotangents of the spikes that come back in a step, from those of its membranes.
  void collect(Index step, Rows<const float> g_v, Rows<float> out);

 private:
  void put(Index step, Rows<const float> g_v);

  SynapticCotangents& of_;
  const Index width_, slots_;
  Index first_ = 0, samples_ = 0, lanes_ = 0, now_ = 0;  // lanes: samples of whole vectors
  Index ahead_ = 0;                                      // steps that have sums
  Buffer<float> lines_;                                  // of each neuron, a slot for each step [width, slots, lanes]
  Buffer<float> sums_;                                   // [width, steps at once, lanes]
};

}  // namespace snnjax
