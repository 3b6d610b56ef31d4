#include "lif_step.hpp"

#include <poputil/VertexTemplates.hpp>

#include "vertices.hpp"

namespace snnjax::builders {
namespace {

using poplar::program::Execute;
using poplar::program::Sequence;
using poputil::templateVertex;

std::vector<Field> fieldsOf(const LifStepTensors& tensors, unsigned i) {
  return {{"v", tensors.v[i]},
          {"current", tensors.current[i]},
          {"decay", tensors.decay[i]},
          {"threshold", tensors.threshold[i]},
          {"gain", tensors.gain[i]}};
}

std::vector<State> statesOf(const LifStepOptions& options, const TileRange& tiles) {
  return {{"rows", options.rows},
          {"neurons", tiles.columns},
          {"reset", static_cast<unsigned char>(options.reset)},
          {"reset_time", static_cast<unsigned char>(options.reset_time)},
          {"spike_from_old", options.spike_from_old},
          {"inclusive", options.inclusive}};
}

}  // namespace

LifStepTensors addLifStepTensors(poplar::Graph& graph, const LifStepOptions& options) {
  const poplar::Type type = floatType(options.half_membranes);
  LifStepTensors tensors;
  tensors.tiles = spreadColumns(options.neurons, type, graph.getTarget().getNumTiles());
  const std::size_t columns = tensors.tiles.columns;
  const auto rows = [&](const char* name) {
    return addBlocks(graph, type, tensors.tiles, options.rows * columns, name);
  };
  const auto constants = [&](const char* name) {
    return addBlocks(graph, poplar::FLOAT, tensors.tiles, columns, name);
  };
  tensors.v = rows("v");
  tensors.current = rows("current");
  tensors.decay = constants("decay");
  tensors.threshold = constants("threshold");
  tensors.gain = constants("gain");
  tensors.v_new = rows("v_new");
  tensors.spikes = rows("spikes");
  return tensors;
}

Sequence addLifStep(poplar::Graph& graph, const LifStepOptions& options, const LifStepTensors& tensors) {
  const poplar::ComputeSet set = graph.addComputeSet("lif_step");
  for (unsigned i = 0; i < tensors.tiles.count; ++i) {
    std::vector<Field> fields = fieldsOf(tensors, i);
    fields.insert(fields.end(), {{"v_new", tensors.v_new[i]}, {"spikes", tensors.spikes[i]}});
    addVertex(graph, set, templateVertex("snnjax::LifStep", floatType(options.half_membranes)), tensors.tiles.first + i,
              fields, statesOf(options, tensors.tiles));
  }
  return Sequence({Execute(set)});
}

LifStepCotangents addLifStepCotangents(poplar::Graph& graph, const LifStepOptions& options,
                                       const LifStepTensors& tensors) {
  const std::size_t columns = tensors.tiles.columns, workers = graph.getTarget().getNumWorkerContexts();
  const auto rows = [&](const char* name) {
    return addBlocks(graph, floatType(options.half_membranes), tensors.tiles, options.rows * columns, name);
  };
  const auto constants = [&](const char* name) {
    return addBlocks(graph, poplar::FLOAT, tensors.tiles, workers * columns, name);
  };
  LifStepCotangents cotangents;
  cotangents.g_v_new = rows("g_v_new");
  cotangents.g_spikes = rows("g_spikes");
  cotangents.g_v = rows("g_v");
  cotangents.g_current = rows("g_current");
  cotangents.g_decay = constants("g_decay");
  cotangents.g_threshold = constants("g_threshold");
  cotangents.g_gain = constants("g_gain");
  return cotangents;
}

Sequence addLifStepBackward(poplar::Graph& graph, const LifStepOptions& options, const LifStepTensors& tensors,
                            const LifStepCotangents& cotangents) {
  std::vector<State> states = statesOf(options, tensors.tiles);
  states.insert(states.end(), {{"detach_reset", options.detach_reset},
                               {"surrogate", static_cast<unsigned char>(options.surrogate)},
                               {"slope", options.slope}});
  const poplar::ComputeSet set = graph.addComputeSet("lif_step_backward");
  for (unsigned i = 0; i < tensors.tiles.count; ++i) {
    std::vector<Field> fields = fieldsOf(tensors, i);
    fields.insert(fields.end(), {{"g_v_new", cotangents.g_v_new[i]},
                                 {"g_spikes", cotangents.g_spikes[i]},
                                 {"g_v", cotangents.g_v[i]},
                                 {"g_current", cotangents.g_current[i]},
                                 {"g_decay", cotangents.g_decay[i]},
                                 {"g_threshold", cotangents.g_threshold[i]},
                                 {"g_gain", cotangents.g_gain[i]}});
    addVertex(graph, set, templateVertex("snnjax::LifStepBackward", floatType(options.half_membranes)),
              tensors.tiles.first + i, fields, states);
  }
  return Sequence({Execute(set)});
}

}  // namespace snnjax::builders
