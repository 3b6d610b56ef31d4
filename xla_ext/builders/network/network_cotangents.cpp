#include "builders/network/rows.hpp"

namespace snnjax::builders {
namespace {

// [blocks, num_blocks, batch * block_steps * columns], where the neurons are; past the last step it is 0.
Tensor addOutputCotangent(Graph& graph, const NetworkPlan& plan, std::size_t l, const std::string& name) {
  const std::size_t columns = plan.layers[l].tiles.columns;
  const Tensor all = addOfSamples(graph, plan, l, plan.num_blocks, plan.block_steps * columns, name);
  if (plan.paddedSteps() == plan.options.num_steps) return all;
  const std::size_t row = plan.options.batch * columns;
  graph.setInitialValue(outputInTime(plan, all).slice(plan.options.num_steps * row, plan.paddedSteps() * row, 1), 0.0F);
  return all;
}

// Of layer l; its cotangents of weights are those of `there` where these are given.
LayerCotangents addLayerCotangents(Graph& graph, const NetworkPlan& plan, std::size_t l, const LayerWeights& there) {
  const LayerPlan& layer = plan.layers[l];
  const std::string name = "layer" + std::to_string(l) + "/";
  const auto matrix = [&](const Tensor& known, std::size_t rows, const char* part) {
    return addMatrix(graph, FLOAT, layer, rows, known, name + part);
  };
  const auto states = [&](const char* part, std::size_t rows = 1) {
    return addStates(graph, plan, l, rows, name + part);
  };
  LayerCotangents own;
  own.g_weights = layer.isNarrow() ? addReadoutGradient(graph, plan, name + "g_weights")
                                   : matrix(there.weights, layer.inputs, "g_weights");
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
    const std::vector<Home>& homes = plan.lists[l + 1].sample_homes;
    if (plan.options.last_spikes_gradient) {
      own.g_last_spikes = addAtHomes(graph, FLOAT, homes, layer.neurons, name + "g_last_spikes");
    }
    if (plan.options.first_spikes && plan.options.first_spikes_gradient) {
      own.g_first_spikes = addAtHomes(graph, FLOAT, homes, layer.neurons, name + "g_first_spikes");
    }
    own.g_recurrent = matrix(there.recurrent, layer.neurons, "g_recurrent");
  }
  if (layer.learns_constants) {
    own.g_decay = states("g_decay");
    own.g_gain = states("g_gain");
    if (!layer.leaky) own.g_threshold = states("g_threshold");
    if (layer.neuron.second_state) own.g_second = states("g_second", kSecondConstants);
  }
  if (l + 1 < plan.layers.size()) return own;
  const ListPlan& list = plan.lists.back();
  own.g_output = plan.listsOutput() ? addHistory(graph, FLOAT, plan, list, list.capacity, name + "g_output")
                                    : addOutputCotangent(graph, plan, l, name + "g_output");
  return own;
}

}  // namespace

Tensor outputInTime(const NetworkPlan& plan, const Tensor& g_output) {
  const std::size_t columns = plan.layers.back().tiles.columns, batch = plan.options.batch, tiles = g_output.dim(0);
  return g_output.reshape({tiles, plan.num_blocks, batch, plan.block_steps, columns})
      .dimShuffle({0, 1, 3, 2, 4})
      .reshape({tiles, plan.paddedSteps() * batch * columns});
}

NetworkCotangents addNetworkCotangents(Graph& graph, const NetworkPlan& plan, const std::vector<LayerWeights>& given) {
  NetworkCotangents cotangents;
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    const LayerWeights there = given.empty() ? LayerWeights{} : given[l];
    cotangents.layers.push_back(addLayerCotangents(graph, plan, l, there));
  }
  if (plan.options.inputs_gradient) {
    const ListPlan& list = plan.lists.front();
    cotangents.g_inputs = addHistory(graph, FLOAT, plan, list, list.capacity, "g_inputs");
  }
  return cotangents;
}

}  // namespace snnjax::builders
