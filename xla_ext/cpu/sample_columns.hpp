// What targets receive over time, by columns: one for each target, in which the steps of a sample lie side by side, and
// samples one after another. Both steps between which a spike is split are neighbours there, and a column of a group of
// samples is so short that it stays in the first-level cache.
#pragma once

#include "delayed_synapses.hpp"

namespace snnjax {

// Samples in groups, and their spikes by neuron: as the places of a column from where what they send arrives.
class SampleGroups {
 public:
  // `positions` receives how many spikes are before each of those given.
  SampleGroups(const ListedRows& sent, const DelayedSynapses& synapses, const Threads& threads,
               Borrowed<std::uint32_t>* positions = nullptr);

  Index count() const;
  Index first(Index group) const { return group * samples_; }
  Index samples(Index group) const { return std::min(samples_, synapses_.batch - first(group)); }
  Index length() const { return length_; }             // of a sample: steps in which anything arrives, and a 0
  Index places() const { return samples_ * length_; }  // of a column

  SpikeRow row(Index group, Index neuron) const {
    const Index before = start(group, neuron);
    return {places_.data() + before, values_ ? values_.data() + before : nullptr,
            static_cast<std::uint32_t>(start(group, neuron + 1) - before), false};
  }
  // How many spikes are before these.
  Index start(Index group, Index neuron) const { return starts_[group * (synapses_.all.neurons + 1) + neuron]; }

 private:
  template <typename Visit>
  void eachRow(Index group, Visit visit) const;
  void sort(const ListedRows& sent, Index group, Index entry, std::uint32_t* positions);

  const DelayedSynapses& synapses_;
  Index length_, samples_;
  Borrowed<std::uint32_t> starts_, places_;
  Borrowed<float> values_;
};

// The columns of a few targets, of one group of samples at a time.
class SampleColumns {
 public:
  static constexpr Index kTargets = 16;  // whole cache lines of rows

  SampleColumns(const DelayedSynapses& synapses, const SampleGroups& groups);

  float* data() { return columns_.data(); }
  const float* data() const { return columns_.data(); }
  Index stride() const { return stride_; }  // from one target to the next

  void fill(const Start& start, Index group, Index first, Index count);
  void read(const Arriving<const float>& from, Index group, Index first, Index count);
  void write(const Arriving<float>& to, Index group, Index first, Index count);

 private:
  // Calls visit(rows, steps, own) for what arrives within the steps and behind them; `own` are rows of this object.
  template <typename T, typename Visit>
  void eachPart(const Arriving<T>& all, Index sample, Index first, Visit visit);

  const DelayedSynapses& synapses_;
  const SampleGroups& groups_;
  Index stride_;
  Borrowed<float> columns_, rows_;  // rows of a sample
};

}  // namespace snnjax
