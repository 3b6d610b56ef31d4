// Plasticity of the synapses of a simulation: by pairs of spikes, and of what a spike releases. The equations are those
// of snnjax/plasticity.py.
#pragma once

#include <array>
#include <vector>

#include "cpu/memory.hpp"
#include "segments.hpp"

namespace snnjax {

struct Bounds {
  float least, most;

  // A weight that is not a number stays one.
  float clip(float weight) const {
    if (weight < least) weight = least;
    return weight > most ? most : weight;
  }
};

// A third factor, by which changes of weights are multiplied; or their eligibility, of which each step keeps a share:
// e = keep e' + change, w = w' + factor e. A synapse without spikes is left alone until it is needed.
class Modulation {
 public:
  // `values` of so many steps, with a stride of 0 or 1.
  Modulation(const float* values, Index stride, Index steps, double keep);

  float at(Index step) const { return values_[step * stride_]; }
  // Takes both from behind a step to behind a later one, without changes; bounds hold in each step.
  void advance(float& weight, float& eligibility, Index from, Index to, Bounds bounds) const;

 private:
  const float* values_;
  const Index stride_;
  std::vector<double> ahead_;   // [steps + 1]: of one that is 1 before a step, what all later steps add
  std::vector<double> powers_;  // [steps + 1], of the share that is kept
  std::vector<Index> ends_;     // [steps]: the last of the steps from this one on whose factors have one sign
};

// Pair-based spike-timing-dependent plasticity of the synapses of a block: pairs are of arrivals and spikes.
class SpikeTimingPlasticity {
 public:
  struct Rule {
    std::array<float, 2> decay;  // of both traces in a step
    std::array<float, 2> rates;  // of strengthening, of weakening
    Bounds bounds;               // of weights that change
    const Modulation* third = nullptr;
    float keep = 0.0F;              // of eligibility in a step
    float* eligibility = nullptr;   // of each synapse; nullptr: none
    std::int32_t* known = nullptr;  // the step behind which a synapse has its weight and eligibility
  };

  // `plastic` says which synapses change; nullptr: all. Weights change in place. `before` holds the traces that spikes
  // have found, and `sent` is 1 where there was a spike; `after`, [stride], the traces of the neurons of this block.
  SpikeTimingPlasticity(const DelayedSynapses& synapses, Index block, Index targets, const bool* plastic,
                        const Rule& rule, float* weights, const History& before, const History& sent, float* after);

  // Brings synapses that spikes have reached, one of them or all up to date, as they are behind a step.
  void update(Index step, const std::vector<Segment>& arrived);
  void update(Index step, Index synapse);
  void updateAll(Index step);

  // Once the neurons of this block have done a step, in which they found these segments and these of them spiked.
  void step(Index step, const std::vector<Segment>& arrived, const std::vector<std::uint32_t>& spikes);

 private:
  struct Entry {
    std::uint32_t sender, synapse;
    std::uint16_t delay;
  };

  bool changes(Index synapse) const { return plastic_ == nullptr || plastic_[synapse]; }
  void change(Index step, Index synapse, float by);

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
