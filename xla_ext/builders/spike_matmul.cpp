#include "spike_matmul.hpp"

#include <popops/Reduce.hpp>
#include <popops/Zero.hpp>
#include <poputil/VertexTemplates.hpp>

#include "vertices.hpp"

namespace snnjax::builders {
namespace {

using poplar::program::Execute;
using poplar::program::Sequence;
using poputil::templateVertex;

std::vector<State> statesOf(const SpikeMatmulOptions& options, const TileRange& tiles) {
  return {{"rows", options.rows},
          {"capacity", options.capacity},
          {"num_inputs", options.num_inputs},
          {"outputs", tiles.columns}};
}

}  // namespace

TileRange tilesOf(const SpikeMatmulOptions& options, unsigned num_tiles) {
  constexpr unsigned kWordBytes = 8;  // of the widest load
  return spreadColumns(options.outputs, kWordBytes / (options.half_weights ? 2 : 4), num_tiles);
}

SpikeMatmulTensors addSpikeMatmulTensors(poplar::Graph& graph, const SpikeMatmulOptions& options,
                                         const SpikeMatmulUse& use) {
  const unsigned num_tiles = graph.getTarget().getNumTiles();
  const poplar::Type type = floatType(options.half_weights);
  const std::vector<Home> homes = spreadRows(options.rows, num_tiles);
  SpikeMatmulTensors tensors;
  tensors.tiles = tilesOf(options, num_tiles);
  tensors.ids = addAtHomes(graph, idType(options.long_ids), homes, options.capacity, "ids");
  const std::size_t columns = tensors.tiles.columns, rows = options.num_inputs + std::size_t{1};
  if (use.values) tensors.values = addAtHomes(graph, type, homes, options.capacity, "values");
  if (use.weights) tensors.weights = addBlocks(graph, type, tensors.tiles, rows * columns, "weights");
  if (use.out) tensors.out = addBlocks(graph, type, tensors.tiles, options.rows * columns, "out");
  return tensors;
}

Sequence addSpikeMatmul(poplar::Graph& graph, const SpikeMatmulOptions& options, const SpikeMatmulTensors& tensors) {
  const poplar::Type type = floatType(options.half_weights);
  const std::string vertex = templateVertex("snnjax::SpikeMatmul", type, idType(options.long_ids));
  const poplar::ComputeSet set = graph.addComputeSet("spike_matmul");
  for (unsigned i = 0; i < tensors.tiles.count; ++i) {
    addVertex(
        graph, set, vertex, tensors.tiles.first + i,
        {{"ids", tensors.ids}, {"values", tensors.values}, {"weights", tensors.weights[i]}, {"out", tensors.out[i]}},
        statesOf(options, tensors.tiles));
  }
  return Sequence({Execute(set)});
}

SpikeMatmulCotangents addSpikeMatmulCotangents(poplar::Graph& graph, const SpikeMatmulOptions& options,
                                               const SpikeMatmulTensors& tensors, const SpikeMatmulUse& use) {
  const poplar::Type type = floatType(options.half_weights);
  const std::size_t columns = tensors.tiles.columns, rows = options.num_inputs + std::size_t{1};
  const std::vector<Home> homes = spreadRows(options.rows, graph.getTarget().getNumTiles());
  SpikeMatmulCotangents cotangents;
  cotangents.g = addBlocks(graph, type, tensors.tiles, options.rows * columns, "g");
  if (use.values_gradient) cotangents.d_values = addAtHomes(graph, type, homes, options.capacity, "d_values");
  if (use.weights_gradient) {
    cotangents.d_weights = addBlocks(graph, poplar::FLOAT, tensors.tiles, rows * columns, "d_weights");
  }
  return cotangents;
}

namespace {

// Each tile's dot products with its own columns, and their sum.
void addValuesGradient(poplar::Graph& graph, const SpikeMatmulOptions& options, const SpikeMatmulTensors& tensors,
                       const SpikeMatmulCotangents& cotangents, poplar::ComputeSet set, Sequence& then) {
  const std::string vertex =
      templateVertex("snnjax::SpikeMatmulValuesGradient", floatType(options.half_weights), idType(options.long_ids));
  const poplar::Tensor dots =
      addBlocks(graph, poplar::FLOAT, tensors.tiles, std::size_t{options.rows} * options.capacity, "spike_matmul/dots");
  for (unsigned i = 0; i < tensors.tiles.count; ++i) {
    addVertex(graph, set, vertex, tensors.tiles.first + i,
              {{"ids", tensors.ids}, {"weights", tensors.weights[i]}, {"g", cotangents.g[i]}, {"d_values", dots[i]}},
              statesOf(options, tensors.tiles));
  }
  popops::reduceWithOutput(graph, dots, cotangents.d_values.flatten(), {0}, popops::Operation::ADD, then,
                           "spike_matmul/sum");
}

void addWeightsGradient(poplar::Graph& graph, const SpikeMatmulOptions& options, const SpikeMatmulTensors& tensors,
                        const SpikeMatmulCotangents& cotangents, poplar::ComputeSet set) {
  const std::string vertex =
      templateVertex("snnjax::SpikeMatmulWeightsGradient", floatType(options.half_weights), idType(options.long_ids));
  for (unsigned i = 0; i < tensors.tiles.count; ++i) {
    addVertex(graph, set, vertex, tensors.tiles.first + i,
              {{"ids", tensors.ids},
               {"values", tensors.values},
               {"g", cotangents.g[i]},
               {"d_weights", cotangents.d_weights[i]}},
              statesOf(options, tensors.tiles));
  }
}

}  // namespace

Sequence addSpikeMatmulBackward(poplar::Graph& graph, const SpikeMatmulOptions& options,
                                const SpikeMatmulTensors& tensors, const SpikeMatmulCotangents& cotangents) {
  const poplar::ComputeSet set = graph.addComputeSet("spike_matmul_backward");
  Sequence program, then;
  if (cotangents.d_values.valid()) addValuesGradient(graph, options, tensors, cotangents, set, then);
  if (cotangents.d_weights.valid()) {
    addWeightsGradient(graph, options, tensors, cotangents, set);
    popops::zero(graph, cotangents.d_weights, program, "spike_matmul/zero");
  }
  program.add(Execute(set));
  program.add(then);
  return program;
}

}  // namespace snnjax::builders
