// Synapses by the neurons that send, in compressed rows, and the products of spikes with their weights.
#pragma once

#include <vector>

#include "cpu/lists/listed_rows.hpp"
#include "cpu/numbers.hpp"
#include "cpu/parallel.hpp"

namespace snnjax {

// Those of neuron i are [ends[i - 1], ends[i]), from 0 for the first neuron. Nothing is trusted: ends may be in any
// order and out of range, and a target out of range receives nothing.
struct Synapses {
  const std::int32_t* ends;  // [neurons]
  const void* targets;       // [count], uint16 or int32
  bool targets_are_uint16;
  Index neurons, count, outputs;

  Index first(Index neuron) const { return neuron == 0 ? 0 : within(ends[neuron - 1]); }
  Index end(Index neuron) const { return within(ends[neuron]); }
  // Negative targets become numbers that are out of range, too.
  Index target(Index synapse) const {
    if (targets_are_uint16) return static_cast<const std::uint16_t*>(targets)[synapse];
    return static_cast<Index>(static_cast<const std::uint32_t*>(targets)[synapse]);
  }

 private:
  Index within(Index number) const { return number < 0 ? 0 : std::min(number, count); }
};

// The weights of synapses: numbers, or int8 times the scale of each target.
class SynapseWeights {
 public:
  // `scale` is [targets]; absent: `numbers` are what they say, otherwise int8.
  SynapseWeights(const Numbers& numbers, const Numbers& scale, Index targets)
      : numbers_(numbers), is_int8_(scale), scale_(static_cast<std::size_t>(is_int8_ ? targets : 0)) {
    if (is_int8_) scale.read(0, targets, scale_.data());
  }

  bool isInt8() const { return is_int8_; }
  const std::int8_t* int8() const { return static_cast<const std::int8_t*>(numbers_.data); }
  const Numbers& numbers() const { return numbers_; }
  const float* scale() const { return scale_.data(); }

 private:
  Numbers numbers_;
  bool is_int8_;
  std::vector<float> scale_;
};

// out += what a row of spikes sends; `scratch` is kept from call to call.
void addSent(const SpikeRow& spikes, const Synapses& synapses, const SynapseWeights& weights, float* out,
             std::vector<float>& scratch);

// out[row] = the sum of the weights of the synapses of its spikes, at their targets; out is [rows, outputs].
void send(const ListedRows& spikes, const Synapses& synapses, const SynapseWeights& weights, const WritableNumbers& out,
          const Threads& threads);

// out[row, slot] = what the synapses of the neuron in each listed slot collect from g[row], and 0 for all other slots
// of `capacity`; g is [rows, outputs].
void collectToSlots(const ListedRows& spikes, Index capacity, const Synapses& synapses, const Numbers& weights,
                    const Numbers& g, const WritableNumbers& out, const Threads& threads);

// The same for all neurons of each row: out is [rows, neurons].
void collect(Index rows, const Synapses& synapses, const Numbers& weights, const Numbers& g, const WritableNumbers& out,
             const Threads& threads);

// out[s] = the sum of g[row][target of s] over the rows in which the neuron of synapse s spikes, times the spike.
void correlate(const ListedRows& spikes, const Synapses& synapses, Rows<const float> g, const WritableNumbers& out,
               const Threads& threads);

}  // namespace snnjax
