// Synapses with a delay each, and the products of spikes over time with their weights.
//
// A sequence [time, batch, neurons] is read by columns: one for each neuron or target, in which step t of sample b has
// the place t * batch + b. A delay of k steps then is a shift by k * batch places, the same for all samples, and a
// column is so short that it stays in the first-level cache while all spikes of all its synapses are added to it, or
// collected from it, one by one.
#pragma once

#include <algorithm>
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
  Share share(Index synapse) const {
    const float delay = delays[synapse] > 0.0F ? std::min(delays[synapse], static_cast<float>(longest)) : 0.0F;
    const Index whole = std::min(static_cast<Index>(delay), std::max<Index>(longest - 1, 0));
    const float next = delay - static_cast<float>(whole);
    return {whole, 1.0F - next, next};
  }
  // Writes the cotangents of a synapse from what its spikes meet at both steps; `g_delays` may be nullptr.
  void write(Index synapse, const Share& share, float now, float next, float* g_weights, float* g_delays) const {
    g_weights[synapse] = share.next == 0.0F ? now : share.now * now + share.next * next;
    if (g_delays != nullptr) g_delays[synapse] = weights[synapse] * (next - now);
  }
};

// What arrives, as rows: [steps, batch, outputs], and in the steps behind them [longest, batch, outputs].
template <typename T>
struct Arriving {
  T *currents, *left;

  T* row(const DelayedSynapses& synapses, Index place) const {
    const Index behind = place - synapses.sent();
    return behind < 0 ? currents + place * synapses.all.outputs : left + behind * synapses.all.outputs;
  }
};

// What arrives without any spikes, either of which may be nullptr.
struct Start {
  const float* pending;  // [longest, batch, outputs], of the first steps
  const float* bias;     // [outputs], of all steps but not of those behind them
};

// Adds up the weights of spikes where they arrive; `sent` are those of each place.
void sendDelayed(const ListedRows& sent, const DelayedSynapses& synapses, const Start& start,
                 const Arriving<float>& out, const Threads& threads);

// Writes the cotangents of weights and delays from those of what arrives; `g_delays` may be nullptr.
void correlateDelayed(const ListedRows& sent, const DelayedSynapses& synapses, const Arriving<const float>& g,
                      float* g_weights, float* g_delays, const Threads& threads);

// out[place, slot] = what the synapses of the neuron in each listed slot collect from g, and 0 for all other slots of
// `capacity`.
void collectDelayedToSlots(const ListedRows& sent, Index capacity, const DelayedSynapses& synapses,
                           const Arriving<const float>& g, float* out, const Threads& threads);

// The same for all neurons at all places: out is [sent, neurons].
void collectDelayed(const DelayedSynapses& synapses, const Arriving<const float>& g, float* out,
                    const Threads& threads);

}  // namespace snnjax
