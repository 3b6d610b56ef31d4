// Synapses with a delay each, and the products of spikes over time with their weights.
//
// A sequence [time, batch, neurons] is read by columns: one for each neuron or target, in which step t of sample b has
// the place t * batch + b. A delay of k steps then is a shift by k * batch places, the same for all samples, and a
// column is so short that it stays in the first-level cache while all spikes of all its synapses are added to it, or
// collected from it, one by one.
#pragma once

#include <vector>

#include "listed_rows.hpp"
#include "memory.hpp"
#include "parallel.hpp"
#include "synapses.hpp"

namespace snnjax {

// The share of a spike that arrives after `whole` steps, and that one step later.
struct Share {
  Index whole;
  float now, next;
};

struct DelayedSynapses {
  Synapses all;
  const float *weights, *delays;  // [count]; delays in steps, those out of [0, longest] are clipped, NaN counts as 0
  Index steps, batch, longest;

  Index sent() const { return steps * batch; }  // places of a column of spikes
  Index arriving() const { return (steps + longest) * batch; }
  Index places() const { return arriving() + batch; }  // of any share, one of 0 included
  Share share(Index synapse) const;
};

// What arrives, as rows: [steps, batch, outputs], and in the steps behind them [longest, batch, outputs].
template <typename T>
struct Arriving {
  T *currents, *left;
};

// Adds up the weights of spikes where they arrive; `by_neuron` are the places of the spikes of each neuron, ascending.
void sendDelayed(const ListedRows& by_neuron, const DelayedSynapses& synapses, const Arriving<float>& out,
                 const Threads& threads);

// Writes the cotangents of weights and delays from those of what arrives; `g_delays` may be nullptr.
void correlateDelayed(const ListedRows& by_neuron, const DelayedSynapses& synapses, const Arriving<const float>& g,
                      float* g_weights, float* g_delays, const Threads& threads);

// out[place, slot] = what the synapses of the neuron in each listed slot collect from g, and 0 for all other slots of
// `capacity`.
void collectDelayedToSlots(const ListedRows& sent, Index capacity, const DelayedSynapses& synapses,
                           const Arriving<const float>& g, float* out, const Threads& threads);

// The same for all neurons at all places: out is [sent, neurons].
void collectDelayed(const DelayedSynapses& synapses, const Arriving<const float>& g, float* out,
                    const Threads& threads);

}  // namespace snnjax
