// The backward loop, time reversed: membrane gradients in the first compute set, weight gradients in the second, beside
// sums of partial dot products; with recurrent layers the sums have sets of their own (backward_lists.hpp).
#include <poputil/VertexTemplates.hpp>

#include "backward_constants.hpp"
#include "backward_lists.hpp"
#include "backward_stage.hpp"
#include "lif_network.hpp"
#include "loop.hpp"
#include "recurrent_state.hpp"
#include "scan.hpp"
#include "vertices.hpp"

namespace snnjax::builders {
namespace {

using poplar::UNSIGNED_SHORT;
using poplar::program::Execute;
using poplar::program::Repeat;
using poplar::program::Sequence;
using poputil::templateVertex;

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
    const std::vector<State> switches = surrogateStates(layer.neuron);
    states.insert(states.end(), switches.begin(), switches.end());
  }
  if (layer.neuron.second_state) {
    fields.insert(fields.end(), {{"second", tensors.second[i]},
                                 {"w", raisingStates(loop.plan, l, tensors)[i]},
                                 {"g_w", cotangents.g_w[i]},
                                 {"g_last_w", cotangents.g_last_w[i]}});
    states.push_back({"raises", layer.neuron.raises_threshold});
  }
  std::string type = templateVertex("snnjax::LifMembraneGradient", layer.neuron.second_state);
  if (makesDots(loop.plan, l)) {
    const ListsRead read = listsOfDots(loop, l, i, stage);
    fields.insert(fields.end(), {{"lists", read.lists}, {"weights", tensors.weights[i]}, {"dots", stage.dots[i]}});
    states.insert(states.end(),
                  {{"stride", read.stride}, {"capacity", loop.plan.lists[l].capacity}, {"num_inputs", layer.inputs}});
    const poplar::Type weights = weightsType(loop.plan);
    type = layer.leaky ? templateVertex("snnjax::LeakyBackward", weights, UNSIGNED_SHORT)
                       : templateVertex("snnjax::LifBackward", weights, UNSIGNED_SHORT, layer.neuron.second_state);
  }
  addVertex(loop.graph, loop.sets[0], type, tile, fields, states);
}

void addWeightsGradient(Loop& loop, std::size_t l, unsigned i, const Stage& stage, const LayerCotangents& cotangents) {
  const LayerPlan& layer = loop.plan.layers[l];
  const ListPlan& list = loop.plan.lists[l];
  const ListTensors& at_homes = loop.tensors.lists[l];
  const unsigned tile = layer.tiles.first + i;
  std::vector<Field> fields = {{"lists", list.dense ? at_homes.lists : stage.lists[i]},
                               {"g_current", stage.g_current[i]},
                               {"g_weights", cotangents.g_weights[i]},
                               {"iteration", loop.clock.at(tile, 1)}};
  if (list.valued) fields.push_back({"values", list.dense ? at_homes.values : stage.values[i]});
  const char* name = list.valued ? "snnjax::ValuedRowsGradient" : "snnjax::ListedRowsGradient";
  addVertex(loop.graph, loop.sets[1], templateVertex(name, UNSIGNED_SHORT), tile, fields,
            {{"num_steps", loop.plan.options.num_steps},
             {"delay", layer.backward_delay},
             {"batch", loop.plan.options.batch},
             {"stride", list.stride},
             {"capacity", list.capacity},
             {"num_inputs", layer.inputs},
             {"neurons", layer.tiles.columns}});
}

// From the current's gradient at t to the recurrent weights and the layer's own spikes at t - 1; not at t = 0, which no
// list precedes.
void addRecurrentGradient(Loop& loop, std::size_t l, unsigned i, const Stage& stage,
                          const LayerCotangents& cotangents) {
  const LayerPlan& layer = loop.plan.layers[l];
  const ListPlan& list = loop.plan.lists[l + 1];
  const unsigned tile = layer.tiles.first + i;
  const std::vector<Field> fields = {
      {"lists", stage.own_lists[i]}, {"g_current", stage.g_current[i]}, {"iteration", loop.clock.at(tile, 1)}};
  const std::vector<State> states = {{"num_steps", loop.plan.options.num_steps - 1},
                                     {"delay", layer.backward_delay},
                                     {"batch", loop.plan.options.batch},
                                     {"stride", list.stride},
                                     {"capacity", list.capacity},
                                     {"num_inputs", layer.neurons},
                                     {"neurons", layer.tiles.columns}};
  std::vector<Field> of_weights = fields, of_spikes = fields;
  of_weights.push_back({"g_weights", cotangents.g_recurrent[i]});
  of_spikes.insert(of_spikes.end(), {{"weights", loop.tensors.layers[l].recurrent[i]}, {"dots", stage.own_dots[i]}});
  addVertex(loop.graph, loop.sets[1], templateVertex("snnjax::ListedRowsGradient", UNSIGNED_SHORT), tile, of_weights,
            states);
  addVertex(loop.graph, loop.sets[1], templateVertex("snnjax::ListedDots", weightsType(loop.plan), UNSIGNED_SHORT),
            tile, of_spikes, states);
}

// The gradient of a spiking output is kept on the neurons' own tiles for all steps.
poplar::Tensor addOutputGradient(Loop& loop, std::size_t l, const LayerCotangents& cotangents) {
  const LayerPlan& layer = loop.plan.layers[l];
  const unsigned width = loop.plan.options.batch * layer.tiles.columns;
  const poplar::Tensor g_spikes = addBlocks(loop.graph, poplar::FLOAT, layer.tiles, width, loop.name + "/g_output");
  for (unsigned i = 0; i < layer.tiles.count; ++i) {
    addStep(loop, "snnjax::LoadStep", layer.tiles.first + i, cotangents.g_output[i], g_spikes[i],
            {.set = 1, .delay = layer.backward_delay - 1, .reverse = true});
  }
  return g_spikes;
}

// The gradient of a layer's listed spikes: through the layer above, and through its own next step.
poplar::Tensor addSpikesGradient(Loop& loop, std::size_t l, const std::vector<Stage>& stages) {
  std::vector<ListDots> dots;
  if (l + 1 < stages.size()) dots.push_back({l + 1, stages[l + 1].dots});
  if (loop.plan.layers[l].recurrent) dots.push_back({l, stages[l].own_dots});
  return addDenseGradient(loop, l + 1, addListGradient(loop, l + 1, dots));
}

// The sum of both, in the last set: for spikes that are both output and recurrent.
poplar::Tensor addTogether(Loop& loop, std::size_t l, const poplar::Tensor& a, const poplar::Tensor& b) {
  const LayerPlan& layer = loop.plan.layers[l];
  const unsigned width = loop.plan.options.batch * layer.tiles.columns;
  const poplar::Tensor sum = addBlocks(loop.graph, poplar::FLOAT, layer.tiles, width, loop.name + "/g_spikes");
  for (unsigned i = 0; i < layer.tiles.count; ++i) {
    addVertex(loop.graph, loop.sets.back(), "snnjax::SumRows", layer.tiles.first + i,
              {{"in", poplar::concat(a[i], b[i])}, {"out", sum[i]}}, {{"rows", 2U}, {"columns", width}});
  }
  return sum;
}

// The gradient of the layer's spikes at the step of its next iteration; none of the readout's.
poplar::Tensor addOwnGradient(Loop& loop, std::size_t l, const std::vector<Stage>& stages,
                              const LayerCotangents& cotangents) {
  if (loop.plan.layers[l].leaky) return {};
  if (l + 1 < stages.size()) return addSpikesGradient(loop, l, stages);
  const poplar::Tensor output = addOutputGradient(loop, l, cotangents);
  return loop.plan.layers[l].recurrent ? addTogether(loop, l, output, addSpikesGradient(loop, l, stages)) : output;
}

// Membranes, dots and weight gradients of one step, neurons by neurons.
void addTiles(Loop& loop, std::size_t l, const Stage& stage, const LayerCotangents& cotangents) {
  for (unsigned i = 0; i < loop.plan.layers[l].tiles.count; ++i) {
    addNeurons(loop, l, i, stage, cotangents);
    addWeightsGradient(loop, l, i, stage, cotangents);
    if (loop.plan.layers[l].recurrent) addRecurrentGradient(loop, l, i, stage, cotangents);
  }
}

// Before the loop: layers that learn their constants keep a membrane gradient for that, the gradients of the last
// spikes are added, and no recurrent current comes from after the last step.
Sequence beforeLoop(Loop& loop, const std::vector<Stage>& stages, const NetworkCotangents& cotangents) {
  Sequence program({loop.clock.reset()});
  std::vector<poplar::Tensor> zero;
  const poplar::Tensor& all_inputs = stages.front().all_inputs;
  if (all_inputs.valid()) {
    program.add(fillRecords(loop.graph, loop.plan.layers.front(), loop.plan.options.num_inputs, all_inputs));
  }
  for (std::size_t l = 0; l < stages.size(); ++l) {
    const LayerPlan& layer = loop.plan.layers[l];
    if (layer.recurrent) {
      zero.push_back(stages[l].own_dots);
      if (loop.plan.options.last_spikes_gradient) {
        program.add(addLastSpikesGradient(loop.graph, loop.plan, l, loop.tensors, cotangents.layers[l]));
      }
    }
    if (!layer.learns_constants) continue;
    program.add(layer.leaky ? addReadoutConstantsGradient(loop, l, cotangents.layers[l])
                            : addConstantsGradient(loop, l, stages[l].g_spikes, cotangents.layers[l]));
  }
  program.add(zeros(loop.graph, zero, loop.name + "/zero_dots"));
  return program;
}

// Behind it: first membranes and first spikes.
Sequence afterLoop(Loop& loop, const std::vector<Stage>& stages, const NetworkCotangents& cotangents) {
  Sequence program({addFirstGradient(loop, cotangents)});
  for (std::size_t l = 0; l < stages.size(); ++l) {
    if (!loop.plan.layers[l].recurrent || !loop.plan.options.first_spikes) continue;
    program.add(addFirstSpikesGradient(loop.graph, loop.plan, l, loop.tensors.layers[l], stages[l].g_current,
                                       cotangents.layers[l]));
  }
  return program;
}

// Two sets; with recurrent layers, one for each stage and one more for recurrent spikes that are the output.
unsigned numSets(const NetworkPlan& plan) {
  if (!plan.isRecurrent()) return 2;
  return plan.layers.back().recurrent ? 6 : 5;
}

}  // namespace

Sequence addBackward(poplar::Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors,
                     const NetworkCotangents& cotangents) {
  if (plan.scans) return addScanBackward(graph, plan, tensors, cotangents);
  Loop loop(graph, plan, tensors, "backward", numSets(plan));
  std::vector<Stage> stages;
  for (std::size_t l = 0; l < plan.layers.size(); ++l) stages.push_back(addStage(loop, l));
  for (std::size_t l = plan.lists.size(); l-- > 0;) {
    if (l < plan.layers.size()) {
      stages[l].g_spikes = addOwnGradient(loop, l, stages, cotangents.layers[l]);
      addTiles(loop, l, stages[l], cotangents.layers[l]);
    }
    // Only the second set reads dense inputs: they need no copy and arrive in the first.
    const bool dense = plan.lists[l].dense;
    addLoadLists(loop, l, {.set = dense ? 0U : 1U, .delay = plan.listDelay(l) - (dense ? 0 : 1), .reverse = true});
  }
  if (plan.options.inputs_gradient) {
    addInputsGradient(loop, addListGradient(loop, 0, {{0, stages.front().dots}}), cotangents.g_inputs);
  }
  Sequence body({copyLists(loop, stages)});
  for (const poplar::ComputeSet& set : loop.sets) body.add(Execute(set));
  Sequence program = beforeLoop(loop, stages, cotangents);
  program.add(Repeat(plan.backward_iterations, body));
  program.add(afterLoop(loop, stages, cotangents));
  return program;
}

}  // namespace snnjax::builders
