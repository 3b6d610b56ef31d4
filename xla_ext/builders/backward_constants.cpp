#include "backward_constants.hpp"

#include <string>

namespace snnjax::builders {
namespace {

using poplar::Tensor;
using poplar::program::Copy;
using poplar::program::Execute;
using poplar::program::Sequence;

// A membrane gradient besides the one that the dot products are made of: float [tiles, batch * columns] each.
struct Scratch {
  Tensor g_v, g_last, g_current, g_bias;
};

Scratch addScratch(Loop& loop, std::size_t l) {
  const TileRange& tiles = loop.plan.layers[l].tiles;
  const std::size_t row = std::size_t{loop.plan.options.batch} * tiles.columns;
  const std::string name = loop.name + "/constants" + std::to_string(l) + "/";
  const auto blocks = [&](const char* part) { return addBlocks(loop.graph, poplar::FLOAT, tiles, row, name + part); };
  return {blocks("g_v"), blocks("g_last"), blocks("g_current"), blocks("g_bias")};
}

}  // namespace

std::vector<State> surrogateStates(const NetworkOptions& options) {
  return {{"reset", static_cast<unsigned char>(options.reset)},
          {"detach_reset", options.detach_reset},
          {"surrogate", static_cast<unsigned char>(options.surrogate)},
          {"slope", options.slope}};
}

Sequence addConstantsGradient(Loop& loop, std::size_t l, const Tensor& g_spikes, const LayerCotangents& cotangents) {
  const LayerPlan& layer = loop.plan.layers[l];
  const LayerTensors& tensors = loop.tensors.layers[l];
  const Scratch scratch = addScratch(loop, l);
  std::vector<State> states = surrogateStates(loop.plan.options);
  states.insert(states.end(), {{"num_steps", loop.plan.options.num_steps},
                               {"delay", layer.backward_delay},
                               {"batch", loop.plan.options.batch},
                               {"neurons", layer.tiles.columns}});
  for (unsigned i = 0; i < layer.tiles.count; ++i) {
    const unsigned tile = layer.tiles.first + i;
    addVertex(loop.graph, loop.sets[0], "snnjax::LifConstantsGradient", tile,
              {{"g_spikes", g_spikes[i]},
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
               {"g_gain", cotangents.g_gain[i]}},
              states);
  }
  return Sequence({Copy(cotangents.g_v, scratch.g_v), Copy(cotangents.g_last, scratch.g_last),
                   zeros(loop.graph, {scratch.g_bias}, loop.name + "/zero_scratch")});
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
  std::vector<State> states = surrogateStates(loop.plan.options);
  states.push_back({"batch", loop.plan.options.batch});
  for (std::size_t l = 0; l < loop.plan.layers.size(); ++l) {
    const LayerPlan& layer = loop.plan.layers[l];
    const LayerCotangents& own = cotangents.layers[l];
    if (layer.leaky) continue;
    const std::size_t row = std::size_t{loop.plan.options.batch} * layer.tiles.columns;
    const Tensor before = membraneRow(loop.plan, l, loop.tensors.layers[l], 0);
    const Tensor g_threshold = own.g_threshold.valid()
                                   ? own.g_threshold
                                   : addBlocks(loop.graph, poplar::FLOAT, layer.tiles, row, loop.name + "/unused");
    for (unsigned i = 0; i < layer.tiles.count; ++i) {
      std::vector<State> own_states = states;
      own_states.push_back({"neurons", layer.tiles.columns});
      addVertex(loop.graph, set, "snnjax::LifFirstGradient", layer.tiles.first + i,
                {{"g_v", own.g_v[i]},
                 {"g_last", own.g_last[i]},
                 {"threshold", loop.tensors.layers[l].threshold[i]},
                 {"membranes", before[i]},
                 {"g_first", own.g_first[i]},
                 {"g_threshold", g_threshold[i]}},
                own_states);
    }
  }
  return Sequence({Execute(set)});
}

}  // namespace snnjax::builders
