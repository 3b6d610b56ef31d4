#include "backward_constants.hpp"

#include <poputil/VertexTemplates.hpp>
#include <string>

namespace snnjax::builders {
namespace {

using poplar::Tensor;
using poplar::program::Copy;
using poplar::program::Execute;
using poplar::program::Sequence;

// A second membrane gradient, apart from the one used for the dot products: float [tiles, batch * columns] each.
struct Scratch {
  Tensor g_v, g_last, g_current, g_bias;
  Tensor g_w, g_last_w;  // of neurons with a second state
};

Scratch addScratch(Loop& loop, std::size_t l) {
  const TileRange& tiles = loop.plan.layers[l].tiles;
  const std::size_t row = std::size_t{loop.plan.options.batch} * tiles.columns;
  const std::string name = loop.name + "/constants" + std::to_string(l) + "/";
  const auto blocks = [&](const char* part) { return addBlocks(loop.graph, poplar::FLOAT, tiles, row, name + part); };
  Scratch scratch = {blocks("g_v"), blocks("g_last"), blocks("g_current"), blocks("g_bias"), {}, {}};
  if (!loop.plan.layers[l].neuron.second_state) return scratch;
  scratch.g_w = blocks("g_w");
  scratch.g_last_w = blocks("g_last_w");
  return scratch;
}

}  // namespace

std::vector<State> surrogateStates(const NeuronOptions& neuron) {
  return {{"reset", static_cast<unsigned char>(neuron.reset)},
          {"detach_reset", neuron.detach_reset},
          {"surrogate", static_cast<unsigned char>(neuron.surrogate)},
          {"slope", neuron.slope}};
}

ConstantsShare constantsShare(poplar::Graph& graph, const NetworkPlan& plan, std::size_t l,
                              const LayerCotangents& cotangents) {
  const LayerPlan& layer = plan.layers[l];
  const std::size_t row = std::size_t{plan.options.batch} * layer.tiles.columns;
  const auto unused = [&] { return addBlocks(graph, poplar::FLOAT, layer.tiles, row, "unused"); };
  ConstantsShare share;
  share.g_threshold = cotangents.g_threshold.valid() ? cotangents.g_threshold : unused();
  if (!layer.neuron.second_state) return share;
  share.g_coupling = cotangents.g_second.valid()
                         ? cotangents.g_second.slice(ThresholdCoupling * row, (ThresholdCoupling + 1) * row, 1)
                         : unused();
  return share;
}

Sequence addConstantsGradient(Loop& loop, std::size_t l, const Tensor& g_spikes, const LayerCotangents& cotangents) {
  const LayerPlan& layer = loop.plan.layers[l];
  const LayerTensors& tensors = loop.tensors.layers[l];
  const Scratch scratch = addScratch(loop, l);
  const bool second = layer.neuron.second_state;
  const std::string type = poputil::templateVertex("snnjax::LifConstantsGradient", second);
  std::vector<State> states = surrogateStates(layer.neuron);
  states.insert(states.end(), {{"num_steps", loop.plan.options.num_steps},
                               {"delay", layer.backward_delay},
                               {"batch", loop.plan.options.batch},
                               {"neurons", layer.tiles.columns}});
  for (unsigned i = 0; i < layer.tiles.count; ++i) {
    const unsigned tile = layer.tiles.first + i;
    std::vector<Field> fields = {{"g_spikes", g_spikes[i]},
                                 {"g_counts", cotangents.g_counts[i]},
                                 {"decay", tensors.decay[i]},
                                 {"gain", tensors.gain[i]},
                                 {"threshold", tensors.threshold[i]},
                                 {"second_threshold", tensors.second_threshold[i]},
                                 {"lengths", tensors.lengths[i]},
                                 {"iteration", loop.clock.at(tile, 0)},
                                 {"membranes", tensors.membranes[i]},
                                 {"g_v", scratch.g_v[i]},
                                 {"g_last", scratch.g_last[i]},
                                 {"g_current", scratch.g_current[i]},
                                 {"g_bias", scratch.g_bias[i]},
                                 {"g_decay", cotangents.g_decay[i]},
                                 {"g_threshold", cotangents.g_threshold[i]},
                                 {"g_gain", cotangents.g_gain[i]}};
    if (second) {
      fields.insert(fields.end(), {{"second", tensors.second[i]},
                                   {"w", tensors.second_states[i]},
                                   {"g_w", scratch.g_w[i]},
                                   {"g_last_w", scratch.g_last_w[i]},
                                   {"g_second", cotangents.g_second[i]}});
    }
    addVertex(loop.graph, loop.sets[0], type, tile, fields, states);
  }
  Sequence before({Copy(cotangents.g_v, scratch.g_v), Copy(cotangents.g_last, scratch.g_last),
                   zeros(loop.graph, {scratch.g_bias}, loop.name + "/zero_scratch")});
  if (second) {
    before.add(Copy(cotangents.g_w, scratch.g_w));
    before.add(Copy(cotangents.g_last_w, scratch.g_last_w));
  }
  return before;
}

Sequence addReadoutConstantsGradient(Loop& loop, std::size_t l, const LayerCotangents& cotangents) {
  const LayerPlan& layer = loop.plan.layers[l];
  const LayerTensors& tensors = loop.tensors.layers[l];
  const std::size_t row = std::size_t{loop.plan.options.batch} * layer.tiles.columns;
  const Tensor g_v = addBlocks(loop.graph, poplar::FLOAT, layer.tiles, row, loop.name + "/readout_constants/g_v");
  for (unsigned i = 0; i < layer.tiles.count; ++i) {
    const unsigned tile = layer.tiles.first + i;
    addVertex(loop.graph, loop.sets[0], "snnjax::LeakyConstantsGradient", tile,
              {{"g_output", cotangents.g_output[i]},
               {"decay", tensors.decay[i]},
               {"gain", tensors.gain[i]},
               {"lengths", tensors.lengths[i]},
               {"iteration", loop.clock.at(tile, 0)},
               {"membranes", tensors.membranes[i]},
               {"g_v", g_v[i]},
               {"g_decay", cotangents.g_decay[i]},
               {"g_gain", cotangents.g_gain[i]}},
              {{"num_steps", loop.plan.options.num_steps},
               {"delay", layer.backward_delay},
               {"batch", loop.plan.options.batch},
               {"neurons", layer.tiles.columns}});
  }
  return Sequence({Copy(cotangents.g_v, g_v)});
}

Sequence addFirstGradient(Loop& loop, const NetworkCotangents& cotangents) {
  const poplar::ComputeSet set = loop.graph.addComputeSet(loop.name + "/first_membranes");
  for (std::size_t l = 0; l < loop.plan.layers.size(); ++l) {
    const LayerPlan& layer = loop.plan.layers[l];
    const LayerTensors& tensors = loop.tensors.layers[l];
    const LayerCotangents& own = cotangents.layers[l];
    if (layer.leaky) continue;
    const ConstantsShare share = constantsShare(loop.graph, loop.plan, l, own);
    const Tensor before = membraneRow(loop.plan, l, tensors, 0);
    std::vector<State> states = surrogateStates(layer.neuron);
    states.insert(states.end(), {{"batch", loop.plan.options.batch}, {"neurons", layer.tiles.columns}});
    for (unsigned i = 0; i < layer.tiles.count; ++i) {
      std::vector<Field> fields = {
          {"g_v", own.g_v[i]},      {"g_last", own.g_last[i]},   {"threshold", tensors.threshold[i]},
          {"membranes", before[i]}, {"g_first", own.g_first[i]}, {"g_threshold", share.g_threshold[i]}};
      if (layer.neuron.second_state) {
        fields.insert(fields.end(), {{"second", tensors.second[i]},
                                     {"w", secondRow(loop.plan, l, tensors, 0)[i]},
                                     {"g_w", own.g_w[i]},
                                     {"g_last_w", own.g_last_w[i]},
                                     {"g_first_w", own.g_first_w[i]},
                                     {"g_coupling", share.g_coupling[i]}});
      }
      addVertex(loop.graph, set, poputil::templateVertex("snnjax::LifFirstGradient", layer.neuron.second_state),
                layer.tiles.first + i, fields, states);
    }
  }
  return Sequence({Execute(set)});
}

}  // namespace snnjax::builders
