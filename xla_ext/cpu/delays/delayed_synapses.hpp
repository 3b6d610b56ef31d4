// Synapses with a delay each, and the products of spikes over time with their weights.
//
// What targets receive is kept in columns (sample_columns.hpp): one for each target, in which a delay of k steps is a
// shift by k places, and which are so short that two of them stay in the first-level cache while all spikes of all
// their synapses are added to them, or meet their cotangents, one by one.
#pragma once

#include <algorithm>
#include <vector>

#include "cpu/lists/listed_rows.hpp"
#include "cpu/memory.hpp"
#include "cpu/parallel.hpp"
#include "cpu/synapses/synapses.hpp"

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
  Share share(Index synapse) const {
    const float delay = delays[synapse] > 0.0F ? std::min(delays[synapse], static_cast<float>(longest)) : 0.0F;
    const Index whole = std::min(static_cast<Index>(delay), std::max<Index>(longest - 1, 0));
    const float next = delay - static_cast<float>(whole);
    return {whole, 1.0F - next, next};
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
