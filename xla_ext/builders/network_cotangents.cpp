#include <string>

#include "lif_network.hpp"
#include "scan.hpp"
#include "vertices.hpp"

namespace snnjax::builders {

namespace {

// In a scan the steps of a sample are neighbours on its tile.
poplar::Tensor outputCotangent(poplar::Graph& graph, const NetworkPlan& plan, std::size_t l, const std::string& name) {
  if (!plan.scans) return addStates(graph, plan, l, plan.options.num_steps, name);
  const std::size_t tiles = plan.layers[l].tiles.count, columns = plan.layers[l].tiles.columns;
  const std::size_t batch = plan.options.batch, steps = plan.options.num_steps;
  const poplar::Tensor rows = addScanRows(graph, plan, l, columns, name).reshape({tiles, batch, steps, columns});
  return rows.dimShuffle({0, 2, 1, 3}).reshape({tiles, steps * batch * columns});
}

// Of layer l; its cotangents of weights are those of `there` where these are given.
LayerCotangents addLayerCotangents(poplar::Graph& graph, const NetworkPlan& plan, std::size_t l,
                                   const LayerWeights& there) {
  const LayerPlan& layer = plan.layers[l];
  const std::string name = "layer" + std::to_string(l) + "/";
  const auto blocks = [&](std::size_t elements, const char* part) {
    return addBlocks(graph, poplar::FLOAT, layer.tiles, elements, name + part);
  };
  const auto matrix = [&](const poplar::Tensor& known, std::size_t rows, const char* part) {
    if (known.valid()) return known;
    return plan.scans ? addSpread(graph, poplar::FLOAT, layer, (rows + 1) * layer.tiles.columns, name + part)
                      : blocks((rows + 1) * layer.tiles.columns, part);
  };
  const auto states = [&](const char* part, std::size_t rows = 1) {
    return addStates(graph, plan, l, rows, name + part);
  };
  LayerCotangents own;
  own.g_weights = matrix(there.weights, layer.inputs, "g_weights");
  own.g_bias = states("g_bias");
  own.g_v = states("g_v");
  if (!layer.leaky) {
    own.g_counts = states("g_counts");
    own.g_last = states("g_last");
    own.g_first = states("g_first");
  }
  if (layer.neuron.second_state) {
    own.g_w = states("g_w");
    own.g_last_w = states("g_last_w");
    own.g_first_w = states("g_first_w");
  }
  if (layer.recurrent) {
    const std::vector<Home>& homes = plan.lists[l + 1].homesOfSamples();
    if (plan.options.last_spikes_gradient) {
      own.g_last_spikes = addAtHomes(graph, poplar::FLOAT, homes, layer.neurons, name + "g_last_spikes");
    }
    if (plan.options.first_spikes && plan.options.first_spikes_gradient) {
      own.g_first_spikes = addAtHomes(graph, poplar::FLOAT, homes, layer.neurons, name + "g_first_spikes");
    }
    own.g_recurrent = matrix(there.recurrent, layer.neurons, "g_recurrent");
  }
  if (layer.learns_constants) {
    own.g_decay = states("g_decay");
    own.g_gain = states("g_gain");
    if (!layer.leaky) own.g_threshold = states("g_threshold");
    if (layer.neuron.second_state) own.g_second = states("g_second", kSecondConstants);
  }
  if (l + 1 == plan.layers.size()) own.g_output = outputCotangent(graph, plan, l, name + "g_output");
  return own;
}

}  // namespace

NetworkCotangents addNetworkCotangents(poplar::Graph& graph, const NetworkPlan& plan,
                                       const std::vector<LayerWeights>& given) {
  NetworkCotangents cotangents;
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    const LayerWeights there = given.empty() ? LayerWeights{} : given[l];
    cotangents.layers.push_back(addLayerCotangents(graph, plan, l, there));
  }
  if (plan.options.inputs_gradient) {
    const ListPlan& list = plan.lists.front();
    cotangents.g_inputs = addHistory(graph, poplar::FLOAT, plan, list, list.capacity, "g_inputs");
  }
  return cotangents;
}

}  // namespace snnjax::builders
