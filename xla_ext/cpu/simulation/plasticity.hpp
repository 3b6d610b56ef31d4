// Plasticity of the synapses of a simulation: by pairs of spikes, and of what a spike releases. The equations are those
// of snnjax/plasticity.py.
#pragma once

#include <array>
#include <vector>

#include "cpu/memory.hpp"
#include "segments.hpp"

namespace snnjax {

// Pair-based spike-timing-dependent plasticity of the synapses of a block: pairs are of arrivals and spikes.
class SpikeTimingPlasticity {
 public:
  struct Rule {
    std::array<float, 2> decay;   // of both traces in a step
    std::array<float, 2> rates;   // of strengthening, of weakening
    std::array<float, 2> bounds;  // of weights that change
  };

  // `plastic` says which synapses change; nullptr: all. Weights change in place. `before` holds the traces that spikes
  // have found, and `sent` is 1 where there was a spike; `after`, [stride], the traces of the neurons of this block.
  SpikeTimingPlasticity(const DelayedSynapses& synapses, Index block, Index targets, const bool* plastic,
                        const Rule& rule, float* weights, const History& before, const History& sent, float* after);

  // Once the neurons of this block have done a step, in which they found these segments and these of them spiked.
  void step(Index step, const std::vector<Segment>& arrived, const std::vector<std::uint32_t>& spikes);

 private:
  struct Entry {
    std::uint32_t sender, synapse;
    std::uint16_t delay;
  };

  bool changes(Index synapse) const { return plastic_ == nullptr || plastic_[synapse]; }
  void change(Index synapse, float by);

  const DelayedSynapses synapses_;
  const Index block_, stride_, targets_;
  const bool* plastic_;
  const Rule rule_;
  float* weights_;
  const History before_, sent_;
  float* after_;
  std::vector<Index> starts_;  // of the incoming synapses of each neuron, those that change
  std::vector<Entry> incoming_;
  std::vector<bool> fires_;
};

// Short-term plasticity of all synapses of the neurons of a block.
class ShortTermPlasticity {
 public:
  struct Rule {
    std::vector<float> use, recovery, facilitation;  // of each neuron
  };

  // The state, [neurons], changes in place.
  ShortTermPlasticity(Rule rule, float* used, float* available)
      : rule_(std::move(rule)), used_(used), available_(available) {}

  // What each of the neurons that spike releases, by which its weights are multiplied: in the row of this step.
  void release(const std::vector<std::uint32_t>& spikes, float* row) const;
  void step(const std::vector<std::uint32_t>& spikes);

 private:
  float raised(Index neuron) const {
    return used_[neuron] + rule_.use[static_cast<std::size_t>(neuron)] * (1.0F - used_[neuron]);
  }

  const Rule rule_;
  float *used_, *available_;
};

}  // namespace snnjax
