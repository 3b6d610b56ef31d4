// Samples in groups whose steps stay in a cache, and their spikes by neuron.
#pragma once

#include "delayed_synapses.hpp"

namespace snnjax {

// Spikes of a group are places: the steps of a sample lie side by side, and samples one after another.
class SampleGroups {
 public:
  // A sample has `length` places, and a group `most` of them or one sample. `positions` receives how many spikes are
  // before each of those given.
  SampleGroups(const ListedRows& sent, const DelayedSynapses& synapses, Index length, Index most,
               const Threads& threads, Borrowed<std::uint32_t>* positions = nullptr);

  Index count() const { return (synapses_.batch + samples_ - 1) / samples_; }
  Index first(Index group) const { return group * samples_; }
  Index samples(Index group) const { return std::min(samples_, synapses_.batch - first(group)); }
  Index length() const { return length_; }
  Index places() const { return samples_ * length_; }  // of a group

  // The places in which a neuron spikes, as ids.
  SpikeRow row(Index group, Index neuron) const {
    const Index before = start(group, neuron);
    return {places_.data() + before, values_ ? values_.data() + before : nullptr,
            static_cast<std::uint32_t>(start(group, neuron + 1) - before), false};
  }
  bool anySpike(Index neuron) const;
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

}  // namespace snnjax
