#include <string>

#include "lif_network.hpp"
#include "vertices.hpp"

namespace snnjax::builders {

namespace {

// Of layer l; its cotangents of weights are those of `there` where these are given.
LayerCotangents addLayerCotangents(poplar::Graph& graph, const NetworkPlan& plan, std::size_t l,
                                   const LayerWeights& there) {
  const LayerPlan& layer = plan.layers[l];
  const std::string name = "layer" + std::to_string(l) + "/";
  const std::size_t row = std::size_t{plan.options.batch} * layer.tiles.columns;
  const auto blocks = [&](std::size_t elements, const char* part) {
    return addBlocks(graph, poplar::FLOAT, layer.tiles, elements, name + part);
  };
  const auto matrix = [&](const poplar::Tensor& known, std::size_t rows, const char* part) {
    return known.valid() ? known : blocks((rows + 1) * layer.tiles.columns, part);
  };
  LayerCotangents own;
  own.g_weights = matrix(there.weights, layer.inputs, "g_weights");
  own.g_bias = blocks(row, "g_bias");
  own.g_v = blocks(row, "g_v");
  if (!layer.leaky) {
    own.g_counts = blocks(row, "g_counts");
    own.g_last = blocks(row, "g_last");
    own.g_first = blocks(row, "g_first");
  }
  if (layer.neuron.second_state) {
    own.g_w = blocks(row, "g_w");
    own.g_last_w = blocks(row, "g_last_w");
    own.g_first_w = blocks(row, "g_first_w");
  }
  if (layer.recurrent) {
    const std::vector<Home>& homes = plan.lists[l + 1].homes;
    if (plan.options.last_spikes_gradient) {
      own.g_last_spikes = addAtHomes(graph, poplar::FLOAT, homes, layer.neurons, name + "g_last_spikes");
    }
    if (plan.options.first_spikes && plan.options.first_spikes_gradient) {
      own.g_first_spikes = addAtHomes(graph, poplar::FLOAT, homes, layer.neurons, name + "g_first_spikes");
    }
    own.g_recurrent = matrix(there.recurrent, layer.neurons, "g_recurrent");
  }
  if (layer.learns_constants) {
    own.g_decay = blocks(row, "g_decay");
    own.g_gain = blocks(row, "g_gain");
    if (!layer.leaky) own.g_threshold = blocks(row, "g_threshold");
    if (layer.neuron.second_state) own.g_second = blocks(kSecondConstants * row, "g_second");
  }
  if (l + 1 == plan.layers.size()) own.g_output = blocks(row * plan.options.num_steps, "g_output");
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
