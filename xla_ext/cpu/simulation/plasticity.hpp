// Plasticity of the synapses of a simulation: by pairs of spikes, and of what a spike releases. The equations are those
// of snnjax/plasticity.py.
#pragma once

#include <array>
#include <vector>

#include "cpu/synapses/incoming_synapses.hpp"

namespace snnjax {

// Pair-based spike-timing-dependent plasticity. Target r * neurons + j is receptor r of neuron j.
class SpikeTimingPlasticity {
 public:
  struct Rule {
    std::array<float, 2> decay;   // of both traces in a step
    std::array<float, 2> rates;   // of strengthening, of weakening
    std::array<float, 2> bounds;  // of weights that change
  };

  // `plastic` says which synapses change; nullptr: all. Weights and traces, [neurons], change in place.
  SpikeTimingPlasticity(const Synapses& synapses, const bool* plastic, const Rule& rule, float* weights, float* before,
                        float* after);

  // The neurons that spike in a step, each once.
  void step(const std::uint32_t* spikes, Index count);

 private:
  bool changes(Index synapse) const { return plastic_ == nullptr || plastic_[synapse]; }
  void weaken(std::uint32_t sender);
  void strengthen(std::uint32_t receiver);
  void change(Index synapse, float by);

  const Synapses synapses_;
  const bool* plastic_;
  const Rule rule_;
  float *weights_, *before_, *after_;
  const IncomingSynapses incoming_;  // of each neuron, those that change
  std::vector<bool> fires_;
};

// Short-term plasticity of all synapses of a neuron that sends.
class ShortTermPlasticity {
 public:
  struct Rule {
    std::vector<float> use, recovery, facilitation;  // of each neuron
  };

  // The state, [neurons], changes in place.
  ShortTermPlasticity(Rule rule, float* used, float* available)
      : rule_(std::move(rule)), used_(used), available_(available) {}

  // What each of the neurons that spike releases, by which its weights are multiplied.
  const float* release(const std::uint32_t* spikes, Index count);
  void step(const std::uint32_t* spikes, Index count);

 private:
  float raised(Index neuron) const {
    return used_[neuron] + rule_.use[static_cast<std::size_t>(neuron)] * (1.0F - used_[neuron]);
  }

  const Rule rule_;
  float *used_, *available_;
  std::vector<float> released_;
};

}  // namespace snnjax
