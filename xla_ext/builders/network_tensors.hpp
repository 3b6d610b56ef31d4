// The variables of a network of LIF layers and where they lie. Everything a neuron needs lies on the neuron's tile;
// lists of spikes lie at their homes. Layouts are those of the codelets, see host_layout.hpp for the user's.
#pragma once

#include <poplar/Graph.hpp>
#include <vector>

#include "network_plan.hpp"

namespace snnjax::builders {

// Of one layer, all on its tiles: `tiles` blocks, in each `columns` neighbouring neurons.
struct LayerTensors {
  poplar::Tensor weights;  // [tiles, (inputs + 1) * columns]; a block is row-major, its last row is 0
  poplar::Tensor bias, decay, gain, threshold, second_threshold;  // float [tiles, columns]
  poplar::Tensor lengths;                                         // unsigned [tiles, batch]: a copy for each tile
  poplar::Tensor membranes;  // float [tiles, rows * batch * columns]: row 0 before the first step, row t + 1 after step
                             // t; one row if they are not kept
  poplar::Tensor counts;     // float [tiles, batch * columns]: true spikes summed over time; not of the read-out
  poplar::Tensor v;          // float [tiles, batch * columns]: the membranes to select from; not of the read-out
};

// Of the lists that a layer reads, at their homes.
struct ListTensors {
  poplar::Tensor lists;    // ids [batch, stride]: of the step at hand
  poplar::Tensor history;  // ids [batch * num_steps * stride]: a block [num_steps, samples, stride] for each home
  poplar::Tensor dropped;  // unsigned [batch]: spikes that did not fit, summed over time; not of the inputs
};

struct NetworkTensors {
  poplar::Tensor lengths;  // unsigned [batch], num_steps where a sequence does not end before
  std::vector<LayerTensors> layers;
  std::vector<ListTensors> lists;
};

NetworkTensors addNetworkTensors(poplar::Graph& graph, const NetworkPlan& plan);

poplar::Type weightsType(const NetworkPlan& plan);

// The history of a home: [num_steps, samples * stride].
poplar::Tensor historyOf(const NetworkPlan& plan, const ListPlan& list, const poplar::Tensor& history,
                         const Home& home);

// Row `row` of the membranes of a layer: float [tiles, batch * columns].
poplar::Tensor membraneRow(const NetworkPlan& plan, std::size_t layer, const LayerTensors& tensors, unsigned row);

}  // namespace snnjax::builders
