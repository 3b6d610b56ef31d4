// Recurrent weights of the synapses that exist, while a block of samples runs over time: how cotangents of currents
// come back, and their gradient after all steps. What spikes send is in synapses.hpp.
#pragma once

#include <vector>

#include "cpu/memory.hpp"
#include "cpu/synapses/synapses.hpp"

namespace snnjax {

// The weights of a layer.
struct RecurrentSynapses {
  Synapses all;  // from its neurons to its neurons
  SynapseWeights weights;
};

// What the synapses of each neuron collect. Of a neuron all samples lie side by side, so that a synapse takes whole
// vectors: what a neuron collects is a row of synapses, as one of spikes, times cotangents by target.
class CollectingSynapses {
 public:
  // Weights are multiplied by the `gain` of their targets, once.
  CollectingSynapses(const RecurrentSynapses& of, const float* gain);

  // What a thread needs, kept from call to call.
  struct Scratch {
    std::vector<float> received, collected;  // [neurons and padding, samples of whole vectors]
  };
  // out[r] from the cotangents g[r]; both have whole vectors of neurons.
  void collect(Rows<const float> g, Index rows, Rows<float> out, Scratch& scratch) const;

 private:
  Index neurons_;
  Borrowed<std::uint32_t> targets_;  // those out of range are a row of zeros
  Borrowed<float> weights_;
  std::vector<SpikeRow> rows_;  // of each neuron
};

// The gradient of recurrent weights by the cotangents of all steps.
struct SynapseGradient {
  const RecurrentSynapses& of;
  const RowSource& sent;  // of each row of cotangents, the spikes that arrived with it
  Index rows;
  Rows<const float> g_v;
  const float* gain;          // of each target, which is multiplied with
  WritableNumbers g_weights;  // [synapses]; absent: not needed
  double* sum_gain;           // [neurons], the products of weights and their sums are added; nullptr: not needed
};
void computeSynapseGradient(const SynapseGradient& of, const Threads& threads);

}  // namespace snnjax
