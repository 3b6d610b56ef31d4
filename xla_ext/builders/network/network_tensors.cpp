#include "builders/network/network_tensors.hpp"

#include <tuple>

#include "builders/network/rows.hpp"

namespace snnjax::builders {
namespace {

// Weights on the tiles of each group, unless they are there already.
std::vector<Tensor> addCopies(Graph& graph, const NetworkPlan& plan, const LayerPlan& layer, const Tensor& weights,
                              const std::string& name) {
  if (layer.sample_groups.size() == 1) return {};
  return addGroups(graph, weightsType(plan), layer, name, [&](unsigned) { return weights.dim(1); });
}

LayerTensors addLayer(Graph& graph, const NetworkPlan& plan, std::size_t l, const LayerWeights& given) {
  const LayerPlan& layer = plan.layers[l];
  const std::string name = "layer" + std::to_string(l) + "/";
  const unsigned columns = layer.tiles.columns;
  const auto states = [&](std::size_t rows, const char* part) { return addStates(graph, plan, l, rows, name + part); };
  const auto constants = [&](std::size_t elements, const char* part) {
    return poplar::concat(addGroups(graph, FLOAT, layer, name + part, [=](unsigned) { return elements; }), 1);
  };
  LayerTensors tensors;
  addWeights(graph, plan, l, given, tensors);
  if (plan.num_blocks > 1) tensors.weight_copies = addCopies(graph, plan, layer, tensors.weights, name + "copies");
  tensors.bias = constants(columns, "bias");
  tensors.decay = constants(columns, "decay");
  tensors.gain = constants(columns, "gain");
  tensors.lengths = poplar::concat(
      addGroups(graph, UNSIGNED_INT, layer, name + "lengths", [](unsigned samples) { return samples; }), 1);
  tensors.membranes = states(plan.membraneRows(l), "membranes");
  if (layer.leaky) return tensors;
  tensors.threshold = constants(columns, "threshold");
  tensors.second_threshold = constants(columns, "second_threshold");
  if (plan.options.counts) tensors.counts = states(1, "counts");
  if (layer.neuron.second_state) {
    tensors.second = constants(kSecondConstants * columns, "second");
    tensors.second_states = states(plan.secondRows(l), "second_states");
  }
  if (!layer.recurrent) return tensors;
  if (tensors.recurrent_copies.empty()) {
    tensors.recurrent_copies = addCopies(graph, plan, layer, tensors.recurrent, name + "recurrent_copies");
  }
  tensors.first_current = states(1, "first_current");
  const auto atHomes = [&](const char* part) {
    return addAtHomes(graph, FLOAT, plan.lists[l + 1].sample_homes, layer.neurons, name + part);
  };
  tensors.last_spikes = atHomes("last_spikes");
  if (plan.options.first_spikes) tensors.first_spikes = atHomes("first_spikes");
  return tensors;
}

ListTensors addLists(Graph& graph, const NetworkPlan& plan, std::size_t l) {
  const ListPlan& list = plan.lists[l];
  const std::string name = "lists" + std::to_string(l) + "/";
  const bool is_apart = list.dense || plan.num_blocks > 1;
  // Those of all blocks, and of one.
  const auto add = [&](const Type& type, std::size_t width, const char* part) {
    const Tensor history = addHistory(graph, type, plan, list, width, name + part + "_history");
    const Tensor own =
        is_apart ? addAtHomes(graph, type, list.homes, width, name + part) : history.reshape({plan.blockRows(), width});
    return std::pair(history, own);
  };
  ListTensors tensors;
  if (list.valued) std::tie(tensors.values_history, tensors.values) = add(FLOAT, list.capacity, "values");
  if (list.dense) {
    tensors.lists = addAtHomes(graph, UNSIGNED_SHORT, list.homes, list.stride, name + "lists");
  } else {
    std::tie(tensors.history, tensors.lists) = add(UNSIGNED_SHORT, list.stride, "lists");
  }
  if (!NetworkPlan::isMade(l)) return tensors;
  tensors.dropped = graph.addVariable(UNSIGNED_INT, {plan.options.batch}, name + "dropped");
  for (unsigned b = 0; b < plan.options.batch; ++b) {
    graph.setTileMapping(tensors.dropped[b], list.homes[b * list.homes.size() / plan.options.batch].tile);
  }
  return tensors;
}

// A history as [steps of all blocks, batch, width].
Tensor inBlocks(const NetworkPlan& plan, const ListPlan& list, const Tensor& history, std::size_t width) {
  const std::size_t blocks = plan.num_blocks, steps = plan.block_steps, batch = plan.options.batch;
  std::vector<Tensor> homes;
  for (const Home& home : list.homes) {
    homes.push_back(historyOf(plan, width, history, home).reshape({blocks, home.rows, width}));
  }
  const Tensor rows = blocks == 1 ? history : poplar::concat(homes, 1);
  return rows.reshape({blocks, batch, steps, width}).dimShuffle({0, 2, 1, 3}).reshape({blocks * steps, batch, width});
}

}  // namespace

Type weightsType(const NetworkPlan& plan) { return floatType(plan.options.half_weights); }

Tensor historyOf(const NetworkPlan& plan, std::size_t width, const Tensor& history, const Home& home) {
  const std::size_t blocks = plan.num_blocks, first = home.first * blocks * width, own = home.rows * width;
  return history.slice(first, first + blocks * own).reshape({blocks, own});
}

Tensor addHistory(Graph& graph, const Type& type, const NetworkPlan& plan, const ListPlan& list, std::size_t width,
                  const std::string& name, unsigned behind) {
  const std::size_t elements = std::size_t{plan.blockRows()} * plan.num_blocks * width;
  const Tensor history = graph.addVariable(type, {elements}, name);
  for (const Home& home : list.homes) graph.setTileMapping(historyOf(plan, width, history, home), home.tile);
  if (plan.paddedSteps() == plan.options.num_steps || width == 0) return history;
  graph.setInitialValue(inBlocks(plan, list, history, width).slice(plan.options.num_steps, plan.paddedSteps()), behind);
  return history;
}

Tensor inTime(const NetworkPlan& plan, const ListPlan& list, const Tensor& history, std::size_t width) {
  return inBlocks(plan, list, history, width).slice(0, plan.options.num_steps);
}

Program runOnHistories(Graph& graph, const NetworkPlan& plan, const ListPlan& list, const std::string& name,
                       const std::string& vertex, const std::vector<Field>& histories,
                       const std::vector<State>& states) {
  const ComputeSet set = graph.addComputeSet(name);
  const std::size_t rows = std::size_t{plan.blockRows()} * plan.num_blocks;
  for (const Home& home : list.homes) {
    std::vector<Field> fields;
    for (const auto& [field, all] : histories) {
      if (all.valid()) fields.push_back({field, historyOf(plan, all.numElements() / rows, all, home)});
    }
    addVertex(graph, set, vertex, home.tile, fields, with(states, {{"rows", plan.num_blocks * home.rows}}));
  }
  return Execute(set);
}

Tensor addOfSamples(Graph& graph, const NetworkPlan& plan, std::size_t l, std::size_t rows, std::size_t each,
                    const std::string& name) {
  const LayerPlan& layer = plan.layers[l];
  std::vector<Tensor> groups =
      addGroups(graph, FLOAT, layer, name, [=](unsigned samples) { return samples * rows * each; });
  for (Tensor& own : groups) own = own.reshape({layer.tiles.count, rows, own.dim(1) / rows});
  return poplar::concat(groups, 2);
}

Tensor addStates(Graph& graph, const NetworkPlan& plan, std::size_t l, std::size_t rows, const std::string& name) {
  const Tensor states = addOfSamples(graph, plan, l, rows, plan.layers[l].tiles.columns, name);
  return states.reshape({states.dim(0), states.dim(1) * states.dim(2)});
}

Tensor addGroup(Graph& graph, const Type& type, const LayerPlan& layer, std::size_t group, std::size_t elements,
                const std::string& name) {
  const Tensor blocks = graph.addVariable(type, {layer.tiles.count, elements}, name);
  for (unsigned p = 0; p < layer.tiles.count; ++p) graph.setTileMapping(blocks[p], layer.tileOf(p, group));
  return blocks;
}

std::vector<Tensor> addGroups(Graph& graph, const Type& type, const LayerPlan& layer, const std::string& name,
                              const std::function<std::size_t(unsigned)>& elements) {
  std::vector<Tensor> groups;
  for (std::size_t g = 0; g < layer.sample_groups.size(); ++g) {
    groups.push_back(addGroup(graph, type, layer, g, elements(layer.sample_groups[g].count), name));
  }
  return groups;
}

Tensor rowOf(const NetworkPlan& plan, std::size_t layer, const Tensor& states, unsigned row) {
  const std::size_t elements = std::size_t{plan.options.batch} * plan.layers[layer].tiles.columns;
  return !states.valid() ? states : states.slice(row * elements, (row + 1) * elements, 1);
}

Tensor secondConstant(const LayerPlan& layer, const LayerTensors& tensors, GlifConstant constant, std::size_t group) {
  const std::size_t first = (group * kSecondConstants + constant - WDecay) * layer.tiles.columns;
  return tensors.second.slice(first, first + layer.tiles.columns, 1);
}

void addWeights(Graph& graph, const NetworkPlan& plan, std::size_t l, const LayerWeights& given,
                LayerTensors& tensors) {
  const LayerPlan& layer = plan.layers[l];
  const auto matrix = [&](const Tensor& own, std::size_t rows, const char* part) {
    return addMatrix(graph, weightsType(plan), layer, rows, own, "layer" + std::to_string(l) + "/" + part);
  };
  tensors.weights = matrix(given.weights, layer.inputs, "weights");
  if (!layer.recurrent) return;
  tensors.recurrent = matrix(given.recurrent, layer.neurons, "recurrent");
  if (layer.sample_groups.size() == 1) tensors.recurrent_copies = {tensors.recurrent};
}

Tensor withGiven(const LayerPlan& layer, const Tensor& blocks, const Tensor& given) {
  const std::size_t whole = layer.neurons / layer.tiles.columns, elements = blocks.dim(1) - layer.tiles.columns;
  const Tensor first = given.slice(0, whole * elements).reshape({whole, elements}),
               behind = blocks.slice(0, whole).slice(elements, blocks.dim(1), 1);
  return poplar::concat(poplar::concat(first, behind, 1), blocks.slice(whole, blocks.dim(0)));
}

NetworkTensors addNetworkTensors(Graph& graph, const NetworkPlan& plan, const std::vector<LayerWeights>& given) {
  NetworkTensors tensors;
  tensors.lengths = graph.addVariable(UNSIGNED_INT, {plan.options.batch}, "lengths");
  graph.setTileMapping(tensors.lengths, plan.lists.front().homes.front().tile);
  for (std::size_t l = 0; l < plan.layers.size(); ++l)
    tensors.layers.push_back(addLayer(graph, plan, l, given.empty() ? LayerWeights{} : given[l]));
  for (std::size_t l = 0; l < plan.lists.size(); ++l) tensors.lists.push_back(addLists(graph, plan, l));
  return tensors;
}

}  // namespace snnjax::builders
