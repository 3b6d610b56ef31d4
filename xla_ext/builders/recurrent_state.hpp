// The spikes that recurrent layers carry from call to call, and their gradients, outside the loops over time. They may
// be any numbers, so they are read as a list of all neurons with values.
#pragma once

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

#include "lif_network.hpp"

namespace snnjax::builders {

// Writes the record that lists the ids 0 ... count - 1 to `records` [tiles, stride], on the tiles of `layer`.
poplar::program::Sequence fillRecords(poplar::Graph& graph, const LayerPlan& layer, unsigned count,
                                      const poplar::Tensor& records);

// Before the forward loop: what the spikes before the first step add to the current of layer `l` in that step; they are
// the last ones of sequences without steps.
poplar::program::Sequence addFirstSpikes(poplar::Graph& graph, const NetworkPlan& plan, std::size_t l,
                                         const LayerTensors& tensors);

// After the forward loop.
poplar::program::Sequence addLastSpikes(poplar::Graph& graph, const NetworkPlan& plan, std::size_t l,
                                        const NetworkTensors& tensors);

// Before the backward loop: the gradient of the last spikes joins that of the last membranes (and of the threshold).
poplar::program::Sequence addLastSpikesGradient(poplar::Graph& graph, const NetworkPlan& plan, std::size_t l,
                                                const NetworkTensors& tensors, const LayerCotangents& cotangents);

// After the backward loop, from the current's gradient at the first step: the gradient of the spikes before it, and
// their share of the recurrent weights'.
poplar::program::Sequence addFirstSpikesGradient(poplar::Graph& graph, const NetworkPlan& plan, std::size_t l,
                                                 const LayerTensors& tensors, const poplar::Tensor& g_current,
                                                 const LayerCotangents& cotangents);

}  // namespace snnjax::builders
