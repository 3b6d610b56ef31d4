// The forward loop: neurons and the merging of lists in the first compute set, candidates and storing in the second.
#include <poputil/VertexTemplates.hpp>

#include "forward_lists.hpp"
#include "lif_network.hpp"
#include "loop.hpp"
#include "vertices.hpp"

namespace snnjax::builders {
namespace {

using poplar::program::Copy;
using poplar::program::Execute;
using poplar::program::Repeat;
using poplar::program::Sequence;

void addNeurons(Loop& loop, std::size_t l, unsigned i) {
  const LayerPlan& layer = loop.plan.layers[l];
  const ListPlan& list = loop.plan.lists[l];
  const LayerTensors& tensors = loop.tensors.layers[l];
  const unsigned tile = layer.tiles.first + i;
  std::vector<Field> fields = {{"lists", loop.tensors.lists[l].lists},
                               {"weights", tensors.weights[i]},
                               {"bias", tensors.bias[i]},
                               {"decay", tensors.decay[i]},
                               {"gain", tensors.gain[i]},
                               {"lengths", tensors.lengths[i]},
                               {"membranes", tensors.membranes[i]},
                               {"iteration", loop.clock.at(tile, 0)}};
  std::vector<State> states = {{"num_steps", loop.plan.options.num_steps},
                               {"delay", layer.delay},
                               {"batch", loop.plan.options.batch},
                               {"stride", list.stride},
                               {"capacity", list.capacity},
                               {"num_inputs", layer.inputs},
                               {"neurons", layer.tiles.columns},
                               {"keep_history", loop.plan.keepsMembranes(l)}};
  if (!layer.leaky) {
    fields.push_back({"threshold", tensors.threshold[i]});
    fields.push_back({"counts", tensors.counts[i]});
    fields.push_back({"v", tensors.v[i]});
    states.push_back({"reset", static_cast<unsigned char>(loop.plan.options.reset)});
  }
  const char* name = layer.leaky ? "snnjax::LeakyForward" : "snnjax::LifForward";
  const std::string type = poputil::templateVertex(name, weightsType(loop.plan), poplar::UNSIGNED_SHORT);
  addVertex(loop.graph, loop.sets[0], type, tile, fields, states);
}

// Every tile gets its own copy of the lengths, and sums start at 0.
Sequence start(Loop& loop) {
  std::vector<poplar::Tensor> own_lengths, sums;
  for (std::size_t l = 0; l < loop.plan.layers.size(); ++l) {
    const LayerTensors& layer = loop.tensors.layers[l];
    own_lengths.push_back(layer.lengths);
    if (!loop.plan.layers[l].leaky) sums.push_back(layer.counts);
  }
  for (const ListTensors& list : loop.tensors.lists) {
    if (list.dropped.valid()) sums.push_back(list.dropped);
  }
  const poplar::Tensor lengths = poplar::concat(own_lengths);  // [tiles of all layers, batch]
  return Sequence({loop.clock.reset(),
                   Copy(loop.tensors.lengths.expand({0}).broadcast(static_cast<unsigned>(lengths.dim(0)), 0), lengths),
                   zeros(loop.graph, sums, loop.name + "/zero_sums")});
}

}  // namespace

Sequence addForward(poplar::Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors) {
  Loop loop(graph, plan, tensors, "forward");
  Sequence program = start(loop);
  addInputLists(loop);
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    for (unsigned i = 0; i < plan.layers[l].tiles.count; ++i) addNeurons(loop, l, i);
    if (l + 1 < plan.lists.size()) program.add(addSelection(loop, l));
  }
  program.add(Repeat(plan.iterations, Sequence({Execute(loop.sets[0]), Execute(loop.sets[1])})));
  return program;
}

}  // namespace snnjax::builders
