// Delayed synapses between all pairs of neurons and targets.
//
// What the targets receive is kept in rows, one for each step, of as many targets as a vector has lanes; rows of a few
// samples stay in the first-level cache. A spike adds the taps of its neuron (kernels.hpp) to the rows from its step
// on: as many vectors as there are taps, of which a lane uses two. Forward and to weights together that takes a fifth
// less time than each synapse by itself for 11 taps with AVX-512, and as long for 8 taps with AVX2 (one core of a busy
// Sapphire Rapids).
#pragma once

#include "delayed_synapses.hpp"

namespace snnjax {

// Whether the synapses are all pairs, in their order, and their delays short enough.
bool arePairsOfShortDelays(const DelayedSynapses& synapses);

// The functions of the same names of delayed_synapses.hpp; `sent` are the spikes of each place.
void sendPairs(const ListedRows& sent, const DelayedSynapses& synapses, const Start& start, const Arriving<float>& out,
               const Threads& threads);
void correlatePairs(const ListedRows& sent, const DelayedSynapses& synapses, const Arriving<const float>& g,
                    float* g_weights, float* g_delays, const Threads& threads);
void collectPairsToSlots(const ListedRows& sent, Index capacity, const DelayedSynapses& synapses,
                         const Arriving<const float>& g, float* out, const Threads& threads);

}  // namespace snnjax
