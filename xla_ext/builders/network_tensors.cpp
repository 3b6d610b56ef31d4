#include "network_tensors.hpp"

#include <string>

#include "scan.hpp"
#include "vertices.hpp"

namespace snnjax::builders {
namespace {

LayerTensors addLayer(poplar::Graph& graph, const NetworkPlan& plan, std::size_t l, const LayerWeights& given) {
  const LayerPlan& layer = plan.layers[l];
  const std::string name = "layer" + std::to_string(l) + "/";
  const unsigned columns = layer.tiles.columns;
  const std::size_t row = std::size_t{plan.options.batch} * columns;
  const auto states = [&](std::size_t rows, const char* part) { return addStates(graph, plan, l, rows, name + part); };
  const auto blocks = [&](const poplar::Type& type, std::size_t elements, const char* part) {
    return addBlocks(graph, type, layer.tiles, elements, name + part);
  };
  LayerTensors tensors;
  addWeights(graph, plan, l, given, tensors);
  tensors.bias = blocks(poplar::FLOAT, columns, "bias");
  tensors.decay = blocks(poplar::FLOAT, columns, "decay");
  tensors.gain = blocks(poplar::FLOAT, columns, "gain");
  if (!plan.scans) tensors.lengths = blocks(poplar::UNSIGNED_INT, plan.options.batch, "lengths");
  tensors.membranes = states(plan.membraneRows(l), "membranes");
  if (layer.sums_apart) tensors.current = blocks(poplar::FLOAT, row, "current");
  if (layer.leaky) return tensors;
  tensors.threshold = blocks(poplar::FLOAT, columns, "threshold");
  tensors.second_threshold = blocks(poplar::FLOAT, columns, "second_threshold");
  tensors.counts = states(1, "counts");
  if (!plan.scans) tensors.v = blocks(poplar::FLOAT, row, "v");
  if (layer.neuron.second_state) {
    tensors.second = blocks(poplar::FLOAT, kSecondConstants * columns, "second");
    tensors.second_states = states(plan.secondRows(l), "second_states");
    if (!plan.scans) tensors.raise = blocks(poplar::FLOAT, layer.neuron.raises_threshold ? row : 0, "raise");
  }
  if (!layer.recurrent) return tensors;
  for (std::size_t g = 0; layer.sample_groups.size() > 1 && g < layer.sample_groups.size(); ++g) {
    tensors.copies.push_back(addGroup(graph, weightsType(plan), layer, g, tensors.recurrent.dim(1), name + "copies"));
  }
  tensors.first_current = states(1, "first_current");
  const auto atHomes = [&](const char* part) {
    return addAtHomes(graph, poplar::FLOAT, plan.lists[l + 1].homesOfSamples(), layer.neurons, name + part);
  };
  tensors.last_spikes = atHomes("last_spikes");
  if (!plan.options.first_spikes) return tensors;
  if (!plan.scans) tensors.all_neurons = blocks(poplar::UNSIGNED_SHORT, listStride(layer.neurons), "all_neurons");
  tensors.first_spikes = atHomes("first_spikes");
  return tensors;
}

ListTensors addLists(poplar::Graph& graph, const NetworkPlan& plan, std::size_t l) {
  const ListPlan& list = plan.lists[l];
  const std::string name = "lists" + std::to_string(l) + "/";
  ListTensors tensors;
  if (list.valued) {
    if (!plan.scans || list.dense)
      tensors.values = addAtHomes(graph, poplar::FLOAT, list.homes, list.capacity, name + "values");
    tensors.values_history = addHistory(graph, poplar::FLOAT, plan, list, list.capacity, name + "values_history");
  }
  if (!plan.scans || list.dense) {
    tensors.lists = addAtHomes(graph, poplar::UNSIGNED_SHORT, list.homes, list.stride, name + "lists");
  }
  if (NetworkPlan::isMade(l) && plan.scans) {
    tensors.dropped = graph.addVariable(poplar::UNSIGNED_INT, {plan.options.batch}, name + "dropped");
    for (unsigned b = 0; b < plan.options.batch; ++b) {
      graph.setTileMapping(tensors.dropped[b], list.homes[b * list.homes.size() / plan.options.batch].tile);
    }
  } else if (NetworkPlan::isMade(l)) {
    tensors.dropped = addAtHomes(graph, poplar::UNSIGNED_INT, list.homes, 1, name + "dropped").flatten();
  }
  if (plan.keepsLists(l) && !list.dense) {
    tensors.history = addHistory(graph, poplar::UNSIGNED_SHORT, plan, list, list.stride, name + "history");
  }
  return tensors;
}

// Row `row` of states [tiles, rows * batch * columns].
poplar::Tensor rowOf(const NetworkPlan& plan, std::size_t layer, const poplar::Tensor& states, unsigned row) {
  const std::size_t elements = std::size_t{plan.options.batch} * plan.layers[layer].tiles.columns;
  return states.slice(row * elements, (row + 1) * elements, 1);
}

}  // namespace

poplar::Type weightsType(const NetworkPlan& plan) { return floatType(plan.options.half_weights); }

poplar::Tensor historyOf(const NetworkPlan& plan, std::size_t width, const poplar::Tensor& history, const Home& home) {
  if (plan.scans) {
    return history.slice(home.first_sample * width, (home.first_sample + home.samples) * width)
        .reshape({home.samples, width});
  }
  const std::size_t sample = plan.options.num_steps * width;
  const poplar::Tensor block = history.slice(home.first_sample * sample, (home.first_sample + home.samples) * sample);
  return block.reshape({plan.options.num_steps, home.samples * width});
}

poplar::Tensor addHistory(poplar::Graph& graph, const poplar::Type& type, const NetworkPlan& plan, const ListPlan& list,
                          std::size_t width, const std::string& name) {
  const std::size_t elements = std::size_t{plan.options.batch} * plan.options.num_steps * width;
  const poplar::Tensor history = graph.addVariable(type, {elements}, name);
  for (const Home& home : list.homes) graph.setTileMapping(historyOf(plan, width, history, home), home.tile);
  return history;
}

poplar::Tensor addStates(poplar::Graph& graph, const NetworkPlan& plan, std::size_t l, std::size_t rows,
                         const std::string& name) {
  const LayerPlan& layer = plan.layers[l];
  const std::size_t columns = layer.tiles.columns, batch = plan.options.batch;
  if (!plan.scans) return addBlocks(graph, poplar::FLOAT, layer.tiles, rows * batch * columns, name);
  std::vector<poplar::Tensor> groups;
  for (std::size_t g = 0; g < layer.sample_groups.size(); ++g) {
    const std::size_t own = layer.sample_groups[g].count;
    groups.push_back(addGroup(graph, poplar::FLOAT, layer, g, rows * own * columns, name)
                         .reshape({layer.tiles.count, rows, own, columns}));
  }
  return poplar::concat(groups, 2).reshape({layer.tiles.count, rows * batch * columns});
}

poplar::Tensor addGroup(poplar::Graph& graph, const poplar::Type& type, const LayerPlan& layer, std::size_t group,
                        std::size_t elements, const std::string& name) {
  const poplar::Tensor blocks = graph.addVariable(type, {layer.tiles.count, elements}, name);
  for (unsigned p = 0; p < layer.tiles.count; ++p) graph.setTileMapping(blocks[p], layer.tileOf(p, group));
  return blocks;
}

poplar::Tensor membraneRow(const NetworkPlan& plan, std::size_t layer, const LayerTensors& tensors, unsigned row) {
  return rowOf(plan, layer, tensors.membranes, row);
}

poplar::Tensor secondRow(const NetworkPlan& plan, std::size_t layer, const LayerTensors& tensors, unsigned row) {
  return rowOf(plan, layer, tensors.second_states, row);
}

poplar::Tensor secondConstant(const LayerPlan& layer, const LayerTensors& tensors, SecondConstant constant) {
  return tensors.second.slice(constant * layer.tiles.columns, (constant + 1) * layer.tiles.columns, 1);
}

poplar::Tensor raisingStates(const NetworkPlan& plan, std::size_t layer, const LayerTensors& tensors) {
  const bool raises = plan.layers[layer].neuron.raises_threshold;
  return raises ? tensors.second_states : tensors.second_states.slice(0, 0, 1);
}

void addWeights(poplar::Graph& graph, const NetworkPlan& plan, std::size_t l, const LayerWeights& given,
                LayerTensors& tensors) {
  const LayerPlan& layer = plan.layers[l];
  const std::size_t columns = layer.tiles.columns;
  tensors.zero_rows.clear();
  const auto matrix = [&](const poplar::Tensor& own, std::size_t rows, const char* part) {
    if (own.valid()) {
      tensors.zero_rows.push_back(own.slice(rows * columns, (rows + 1) * columns, 1));
      return own;
    }
    const std::string name = "layer" + std::to_string(l) + "/" + part;
    if (plan.scans) return addSpread(graph, weightsType(plan), layer, (rows + 1) * columns, name);
    return addBlocks(graph, weightsType(plan), layer.tiles, (rows + 1) * columns, name);
  };
  tensors.weights = matrix(given.weights, layer.inputs, "weights");
  if (!layer.recurrent) return;
  tensors.recurrent = matrix(given.recurrent, layer.neurons, "recurrent");
  if (layer.sample_groups.size() == 1) tensors.copies = {tensors.recurrent};
}

NetworkTensors addNetworkTensors(poplar::Graph& graph, const NetworkPlan& plan,
                                 const std::vector<LayerWeights>& given) {
  NetworkTensors tensors;
  tensors.lengths = graph.addVariable(poplar::UNSIGNED_INT, {plan.options.batch}, "lengths");
  graph.setTileMapping(tensors.lengths, plan.lists.front().homes.front().tile);
  for (std::size_t l = 0; l < plan.layers.size(); ++l)
    tensors.layers.push_back(addLayer(graph, plan, l, given.empty() ? LayerWeights{} : given[l]));
  for (std::size_t l = 0; l < plan.lists.size(); ++l) tensors.lists.push_back(addLists(graph, plan, l));
  return tensors;
}

}  // namespace snnjax::builders
