// The forward loop. Feed-forward: neurons and the merging of lists in the first compute set, candidates and storing in
// the second. With recurrent layers a third set merges the lists, so that the next iteration has them.
#include <poputil/VertexTemplates.hpp>

#include "forward_lists.hpp"
#include "lif_network.hpp"
#include "loop.hpp"
#include "recurrent_state.hpp"
#include "scan.hpp"
#include "vertices.hpp"

namespace snnjax::builders {
namespace {

using poplar::Tensor;
using poplar::UNSIGNED_SHORT;
using poplar::program::Copy;
using poplar::program::Execute;
using poplar::program::Repeat;
using poplar::program::Sequence;
using poputil::templateVertex;

// The vertex that advances the neurons of a tile, its fields and states.
struct Vertex {
  std::string name;
  std::vector<Field> fields;
  std::vector<State> states;
};

// What the neurons sum: lists from below; own lists and a current; or a current alone.
Vertex vertexOf(const Loop& loop, std::size_t l, unsigned i) {
  const LayerPlan& layer = loop.plan.layers[l];
  const LayerTensors& tensors = loop.tensors.layers[l];
  const bool second = layer.neuron.second_state;
  if (layer.sums_apart && !layer.recurrent) {
    return {templateVertex("snnjax::LifUpdate", second), {{"current", tensors.current[i]}}, {}};
  }
  const poplar::Type weights = weightsType(loop.plan);
  const std::size_t read = layer.recurrent ? l + 1 : l;
  const ListPlan& list = loop.plan.lists[read];
  Vertex vertex = {layer.leaky ? templateVertex("snnjax::LeakyForward", weights, UNSIGNED_SHORT)
                               : templateVertex("snnjax::LifForward", weights, UNSIGNED_SHORT, second),
                   {{"lists", loop.tensors.lists[read].lists}},
                   {{"stride", list.stride}, {"capacity", list.capacity}, {"num_inputs", list.num_neurons}}};
  if (!layer.recurrent) {
    vertex.fields.push_back({"weights", tensors.weights[i]});
    return vertex;
  }
  vertex.name = templateVertex("snnjax::LifRecurrentForward", weights, UNSIGNED_SHORT, second);
  vertex.fields.insert(
      vertex.fields.end(),
      {{"weights", tensors.recurrent[i]}, {"current", tensors.current[i]}, {"first", tensors.first_current[i]}});
  return vertex;
}

void addNeurons(Loop& loop, std::size_t l, unsigned i) {
  const LayerPlan& layer = loop.plan.layers[l];
  const LayerTensors& tensors = loop.tensors.layers[l];
  const unsigned tile = layer.tiles.first + i;
  Vertex vertex = vertexOf(loop, l, i);
  vertex.fields.insert(vertex.fields.end(), {{"bias", tensors.bias[i]},
                                             {"decay", tensors.decay[i]},
                                             {"gain", tensors.gain[i]},
                                             {"lengths", tensors.lengths[i]},
                                             {"membranes", tensors.membranes[i]},
                                             {"iteration", loop.clock.at(tile, 0)}});
  vertex.states.insert(vertex.states.end(), {{"num_steps", loop.plan.options.num_steps},
                                             {"delay", layer.delay},
                                             {"batch", loop.plan.options.batch},
                                             {"neurons", layer.tiles.columns},
                                             {"keep_history", loop.plan.keepsMembranes(l)}});
  if (!layer.leaky) {
    vertex.fields.insert(vertex.fields.end(),
                         {{"threshold", tensors.threshold[i]}, {"counts", tensors.counts[i]}, {"v", tensors.v[i]}});
    vertex.states.push_back({"reset", static_cast<unsigned char>(layer.neuron.reset)});
  }
  if (layer.neuron.second_state) {
    vertex.fields.insert(vertex.fields.end(),
                         {{"second", tensors.second[i]}, {"w", tensors.second_states[i]}, {"raise", tensors.raise[i]}});
    vertex.states.insert(vertex.states.end(),
                         {{"keep_second", loop.plan.keepsSecond(l)}, {"raises", layer.neuron.raises_threshold}});
  }
  addVertex(loop.graph, loop.sets[0], vertex.name, tile, vertex.fields, vertex.states);
}

// The sum of what a layer reads from below, in the second set of the iteration before its neurons use it.
void addCurrent(Loop& loop, std::size_t l, unsigned i) {
  const LayerPlan& layer = loop.plan.layers[l];
  const ListPlan& list = loop.plan.lists[l];
  const LayerTensors& tensors = loop.tensors.layers[l];
  const unsigned tile = layer.tiles.first + i;
  std::vector<Field> fields = {{"lists", loop.tensors.lists[l].lists},
                               {"weights", tensors.weights[i]},
                               {"lengths", tensors.lengths[i]},
                               {"current", tensors.current[i]},
                               {"iteration", loop.clock.at(tile, 1)}};
  if (list.valued) fields.push_back({"values", loop.tensors.lists[l].values});
  const char* name = list.valued ? "snnjax::ValuedCurrent" : "snnjax::ListedCurrent";
  addVertex(loop.graph, loop.sets[1], templateVertex(name, weightsType(loop.plan), UNSIGNED_SHORT), tile, fields,
            {{"num_steps", loop.plan.options.num_steps},
             {"delay", layer.delay - 1},
             {"batch", loop.plan.options.batch},
             {"stride", list.stride},
             {"capacity", list.capacity},
             {"num_inputs", layer.inputs},
             {"neurons", layer.tiles.columns}});
}

// Every tile gets its own copy of the lengths; sums start at 0, and so do the rows that ids out of range read.
Sequence start(Loop& loop) {
  std::vector<Tensor> own_lengths, sums;
  for (std::size_t l = 0; l < loop.plan.layers.size(); ++l) {
    const LayerTensors& layer = loop.tensors.layers[l];
    own_lengths.push_back(layer.lengths);
    if (!loop.plan.layers[l].leaky) sums.push_back(layer.counts);
    sums.insert(sums.end(), layer.zero_rows.begin(), layer.zero_rows.end());
    if (loop.plan.layers[l].recurrent && !layer.first_spikes.valid()) sums.push_back(layer.first_current);
  }
  for (const ListTensors& list : loop.tensors.lists) {
    if (list.dropped.valid()) sums.push_back(list.dropped);
  }
  const Tensor lengths = poplar::concat(own_lengths);  // [tiles of all layers, batch]
  return Sequence({loop.clock.reset(),
                   Copy(loop.tensors.lengths.expand({0}).broadcast(static_cast<unsigned>(lengths.dim(0)), 0), lengths),
                   zeros(loop.graph, sums, loop.name + "/zero_sums")});
}

}  // namespace

Sequence addForward(poplar::Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors) {
  if (plan.scans) return addScanForward(graph, plan, tensors);
  Loop loop(graph, plan, tensors, "forward", plan.isRecurrent() ? 3 : 2);
  Sequence program = start(loop), after;
  // A set before their readers.
  addLoadLists(loop, 0, {.set = plan.layers.front().sums_apart ? 0U : 1U});
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    for (unsigned i = 0; i < plan.layers[l].tiles.count; ++i) {
      addNeurons(loop, l, i);
      if (plan.layers[l].sums_apart) addCurrent(loop, l, i);
    }
    if (plan.firesLists(l)) program.add(addSelection(loop, l));
    if (!plan.layers[l].recurrent) continue;
    program.add(addFirstSpikes(graph, plan, l, tensors.layers[l]));
    if (plan.options.last_spikes) after.add(addLastSpikes(graph, plan, l, tensors));
  }
  Sequence body;
  for (const poplar::ComputeSet& set : loop.sets) body.add(Execute(set));
  program.add(Repeat(plan.iterations, body));
  program.add(after);
  return program;
}

}  // namespace snnjax::builders
