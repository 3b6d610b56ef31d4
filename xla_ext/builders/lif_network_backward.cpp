// The backward loop, time reversed: membrane gradients in the first compute set, weight gradients and sums of partial
// dot products in the second.
#include <poputil/VertexTemplates.hpp>

#include "backward_constants.hpp"
#include "backward_lists.hpp"
#include "lif_network.hpp"
#include "loop.hpp"
#include "vertices.hpp"

namespace snnjax::builders {
namespace {

using poplar::UNSIGNED_SHORT;
using poplar::program::Copy;
using poplar::program::Execute;
using poplar::program::Repeat;
using poplar::program::Sequence;

// What the stages of one layer hand to each other.
struct Stage {
  poplar::Tensor lists;  // ids [tiles, batch * stride]: every tile's copy of the input lists at t, for two sets read it
  poplar::Tensor g_spikes;   // float [tiles, batch * columns]: of the layer's own listed spikes at t
  poplar::Tensor g_current;  // float [tiles, batch * columns]
  poplar::Tensor dots;  // float [tiles, batch * capacity]: <weights of a listed input, g_current>, own columns only
};

Stage addStage(Loop& loop, std::size_t l) {
  const LayerPlan& layer = loop.plan.layers[l];
  const ListPlan& list = loop.plan.lists[l];
  const std::size_t batch = loop.plan.options.batch;
  const std::string name = loop.name + "/layer" + std::to_string(l) + "/";
  Stage stage;
  stage.lists = addBlocks(loop.graph, UNSIGNED_SHORT, layer.tiles, batch * list.stride, name + "lists");
  stage.g_current = addBlocks(loop.graph, poplar::FLOAT, layer.tiles, batch * layer.tiles.columns, name + "g_current");
  if (l > 0) stage.dots = addBlocks(loop.graph, poplar::FLOAT, layer.tiles, batch * list.capacity, name + "dots");
  return stage;
}

void addNeurons(Loop& loop, std::size_t l, unsigned i, const Stage& stage, const LayerCotangents& cotangents) {
  const NetworkOptions& options = loop.plan.options;
  const LayerPlan& layer = loop.plan.layers[l];
  const LayerTensors& tensors = loop.tensors.layers[l];
  const unsigned tile = layer.tiles.first + i;
  std::vector<Field> fields = {{"decay", tensors.decay[i]},     {"gain", tensors.gain[i]},
                               {"lengths", tensors.lengths[i]}, {"iteration", loop.clock.at(tile, 0)},
                               {"g_v", cotangents.g_v[i]},      {"g_current", stage.g_current[i]},
                               {"g_bias", cotangents.g_bias[i]}};
  std::vector<State> states = {{"num_steps", options.num_steps},
                               {"delay", layer.backward_delay},
                               {"batch", options.batch},
                               {"neurons", layer.tiles.columns}};
  if (layer.leaky) {
    fields.push_back({"g_output", cotangents.g_output[i]});
  } else {
    fields.insert(fields.end(), {{"g_spikes", stage.g_spikes[i]},
                                 {"g_counts", cotangents.g_counts[i]},
                                 {"threshold", tensors.threshold[i]},
                                 {"second_threshold", tensors.second_threshold[i]},
                                 {"membranes", tensors.membranes[i]},
                                 {"g_last", cotangents.g_last[i]}});
    const std::vector<State> switches = surrogateStates(options);
    states.insert(states.end(), switches.begin(), switches.end());
  }
  std::string type = "snnjax::LifMembraneGradient";  // nobody asks for the gradient of the network's inputs
  if (l > 0) {
    const ListPlan& list = loop.plan.lists[l];
    fields.insert(fields.end(), {{"lists", stage.lists[i]}, {"weights", tensors.weights[i]}, {"dots", stage.dots[i]}});
    states.insert(states.end(), {{"stride", list.stride}, {"capacity", list.capacity}, {"num_inputs", layer.inputs}});
    const char* name = layer.leaky ? "snnjax::LeakyBackward" : "snnjax::LifBackward";
    type = poputil::templateVertex(name, weightsType(loop.plan), UNSIGNED_SHORT);
  }
  addVertex(loop.graph, loop.sets[0], type, tile, fields, states);
}

void addWeightsGradient(Loop& loop, std::size_t l, unsigned i, const Stage& stage, const LayerCotangents& cotangents) {
  const LayerPlan& layer = loop.plan.layers[l];
  const ListPlan& list = loop.plan.lists[l];
  const unsigned tile = layer.tiles.first + i;
  addVertex(loop.graph, loop.sets[1], poputil::templateVertex("snnjax::ListedRowsGradient", UNSIGNED_SHORT), tile,
            {{"lists", stage.lists[i]},
             {"g_current", stage.g_current[i]},
             {"g_weights", cotangents.g_weights[i]},
             {"iteration", loop.clock.at(tile, 1)}},
            {{"num_steps", loop.plan.options.num_steps},
             {"delay", layer.backward_delay},
             {"batch", loop.plan.options.batch},
             {"stride", list.stride},
             {"capacity", list.capacity},
             {"num_inputs", layer.inputs},
             {"neurons", layer.tiles.columns}});
}

// The gradient of a spiking output lies on the neurons' own tiles for all steps.
poplar::Tensor addOutputGradient(Loop& loop, std::size_t l, const LayerCotangents& cotangents) {
  const LayerPlan& layer = loop.plan.layers[l];
  const unsigned width = loop.plan.options.batch * layer.tiles.columns;
  const poplar::Tensor g_spikes = addBlocks(loop.graph, poplar::FLOAT, layer.tiles, width, loop.name + "/g_output");
  for (unsigned i = 0; i < layer.tiles.count; ++i) {
    const unsigned tile = layer.tiles.first + i;
    addVertex(loop.graph, loop.sets[1], poputil::templateVertex("snnjax::LoadStep", poplar::FLOAT), tile,
              {{"history", cotangents.g_output[i]}, {"row", g_spikes[i]}, {"iteration", loop.clock.at(tile, 1)}},
              {{"num_steps", loop.plan.options.num_steps},
               {"delay", layer.backward_delay - 1},
               {"width", width},
               {"reverse", true}});
  }
  return g_spikes;
}

// The lists at t go to all tiles that read them, in one exchange for all layers.
Copy copyLists(const Loop& loop, const std::vector<Stage>& stages) {
  std::vector<poplar::Tensor> from, to;
  for (std::size_t l = 0; l < stages.size(); ++l) {
    const unsigned tiles = loop.plan.layers[l].tiles.count;
    from.push_back(loop.tensors.lists[l].lists.flatten().expand({0}).broadcast(tiles, 0).flatten());
    to.push_back(stages[l].lists.flatten());
  }
  return Copy(poplar::concat(from), poplar::concat(to));
}

}  // namespace

NetworkCotangents addNetworkCotangents(poplar::Graph& graph, const NetworkPlan& plan) {
  NetworkCotangents cotangents;
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    const LayerPlan& layer = plan.layers[l];
    const std::string name = "layer" + std::to_string(l) + "/";
    const std::size_t row = std::size_t{plan.options.batch} * layer.tiles.columns;
    const auto blocks = [&](std::size_t elements, const char* part) {
      return addBlocks(graph, poplar::FLOAT, layer.tiles, elements, name + part);
    };
    LayerCotangents own;
    own.g_weights = blocks((std::size_t{layer.inputs} + 1) * layer.tiles.columns, "g_weights");
    own.g_bias = blocks(row, "g_bias");
    own.g_v = blocks(row, "g_v");
    if (!layer.leaky) {
      own.g_counts = blocks(row, "g_counts");
      own.g_last = blocks(row, "g_last");
      own.g_first = blocks(row, "g_first");
    }
    if (!layer.leaky && plan.options.learns_constants) {
      own.g_decay = blocks(row, "g_decay");
      own.g_threshold = blocks(row, "g_threshold");
      own.g_gain = blocks(row, "g_gain");
    }
    if (l + 1 == plan.layers.size()) own.g_output = blocks(row * plan.options.num_steps, "g_output");
    cotangents.layers.push_back(own);
  }
  return cotangents;
}

Sequence addBackward(poplar::Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors,
                     const NetworkCotangents& cotangents) {
  Loop loop(graph, plan, tensors, "backward");
  std::vector<Stage> stages;
  for (std::size_t l = 0; l < plan.layers.size(); ++l) stages.push_back(addStage(loop, l));
  for (std::size_t l = plan.layers.size(); l-- > 0;) {
    if (l + 1 < plan.layers.size()) {
      stages[l].g_spikes = addListGradient(loop, l + 1, stages[l + 1].dots);
    } else if (!plan.layers[l].leaky) {
      stages[l].g_spikes = addOutputGradient(loop, l, cotangents.layers[l]);
    }
    for (unsigned i = 0; i < plan.layers[l].tiles.count; ++i) {
      addNeurons(loop, l, i, stages[l], cotangents.layers[l]);
      addWeightsGradient(loop, l, i, stages[l], cotangents.layers[l]);
    }
    addReversedLists(loop, l);
  }
  Sequence program({loop.clock.reset()});
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    if (plan.options.learns_constants && !plan.layers[l].leaky) {
      program.add(addConstantsGradient(loop, l, stages[l].g_spikes, cotangents.layers[l]));
    }
  }
  Sequence body({copyLists(loop, stages), Execute(loop.sets[0]), Execute(loop.sets[1])});
  program.add(Repeat(plan.backward_iterations, body));
  program.add(addFirstGradient(loop, cotangents));
  return program;
}

}  // namespace snnjax::builders
