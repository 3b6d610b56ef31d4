// A recurrent layer: a loop over the steps of its neurons, between products that take a block of steps at once.
#pragma once

#include "builders/network/rows.hpp"

namespace snnjax::builders {

// The steps of neurons with `current`, rows of a block; `offered` is filled, but for the marks behind membranes, unless
// it returns true.
bool addRecurrentForward(const LayerPass& of, const Tensor& current, const Offered& offered);

// Backward: from the gradients of own spikes to those of the currents, both rows of a block, and of the weights.
void addRecurrentBackward(const LayerPass& of, const Tensor& g_spikes, const Tensor& g_current);

// The spikes that a state carries. Before the forward pass: what those before the first step add to the current in that
// step; they are the last ones of sequences without steps. After it: those of the last step.
Sequence addFirstSpikes(const LayerPass& of);
Sequence addLastSpikes(const LayerPass& of);
// Before the backward pass the gradient of the last spikes joins that of the last membranes (and of the threshold);
// after it the gradient of the first ones follows from that of the currents, and they are one more list for the
// weights'.
Sequence addLastSpikesGradient(const LayerPass& of);
Sequence addFirstSpikesGradient(const LayerPass& of, const Tensor& g_current);
Program addFirstSpikesWeights(const LayerPass& of, const WeightsGradient& weights, const Tensor& g_current);
// The record that lists all neurons.
Tensor addRecordOfAll(Graph& graph, const ListPlan& list);

}  // namespace snnjax::builders
