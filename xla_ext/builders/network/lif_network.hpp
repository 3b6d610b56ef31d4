// `lif_network` on tiles: a network of LIF layers over all time steps, forward and backward, as programs whose loops
// run on the device. What they compute is defined by snnjax/ops/lif_network.py; README.md explains the layout.
#pragma once

#include "builders/network/network_tensors.hpp"

namespace snnjax::builders {

// Reads weights, constants, lengths, row 0 of the membranes and second states, the first spikes and the history of the
// input lists and values; writes membranes, counts, dropped, last spikes, and the histories of all lists if the record
// is kept. Where membranes or second states are not kept, their one row is the state: before the first step on entry,
// after the last one on return.
Sequence addForward(Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors);

// Cotangents in and out of the backward pass of one layer, on its tiles, in the layouts of LayerTensors.
struct LayerCotangents {
  Tensor g_counts;   // in: float [tiles, batch * columns]
  Tensor g_last;     // in: float [tiles, batch * columns], of the last membranes; is overwritten
  Tensor g_output;   // in, of the network's output, last layer only: float, outputInTime() says where; of
                     // lists a history of their entries at the homes
  Tensor g_weights;  // out: float [tiles, (inputs + 1) * columns]; last row of a block: scratch
  Tensor g_bias;     // out: float [tiles, batch * columns], to be summed over the batch
  // float [tiles, batch * columns]; of the readout the gradient of its last membranes on entry, of its first ones on
  // return.
  Tensor g_v;
  // Of recurrent layers. In, is overwritten: float [batch, neurons] at the homes of the layer's lists, of the last
  // spikes. Out: likewise of the spikes before the first step; float [tiles, (neurons + 1) * columns], as g_weights.
  Tensor g_last_spikes, g_first_spikes, g_recurrent;
  Tensor g_first;  // out: float [tiles, batch * columns], of the first membranes; not of the readout
  // Of neurons with a second state: float [tiles, batch * columns]; as g_last and g_first.
  Tensor g_w, g_last_w, g_first_w;
  // Out, where the layer learns its constants: float [tiles, batch * columns], to be summed over the
  // batch. A readout has no threshold.
  Tensor g_decay, g_threshold, g_gain;
  Tensor g_second;  // likewise of LayerTensors::second: float [tiles, 6 * batch * columns]
};

struct NetworkCotangents {
  std::vector<LayerCotangents> layers;
  // Out, where options.inputs_gradient: as ListTensors::values_history of the inputs; any numbers in slots that list
  // nothing.
  Tensor g_inputs;
};

// The gradient of the output, seen as [tiles, steps of all blocks * batch * columns].
Tensor outputInTime(const NetworkPlan& plan, const Tensor& g_output);

// Gradients of weights are given for all layers, or for none.
NetworkCotangents addNetworkCotangents(Graph& graph, const NetworkPlan& plan,
                                       const std::vector<LayerWeights>& given = {});

// Runs after the forward program, on the record it kept.
Sequence addBackward(Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors,
                     const NetworkCotangents& cotangents);

}  // namespace snnjax::builders
