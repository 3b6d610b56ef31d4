#include "spike_matmul.hpp"

#include <popops/Reduce.hpp>
#include <popops/Zero.hpp>

namespace snnjax::builders {
namespace {

// A vertex on each tile of the outputs, with its blocks of those fields that are in blocks.
Sequence addVertices(Graph& graph, const SpikeMatmulOptions& options, const TileRange& tiles,
                     const std::string& codelet, const std::string& name, const std::vector<Field>& whole,
                     const std::vector<Field>& in_blocks) {
  const std::string vertex = templateVertex(codelet, floatType(options.half_weights), idType(options.long_ids));
  const ComputeSet set = graph.addComputeSet(name);
  for (unsigned i = 0; i < tiles.count; ++i) {
    std::vector<Field> fields = whole;
    for (const Field& each : in_blocks) fields.push_back({each.name, each.tensor[i]});
    addVertex(graph, set, vertex, tiles.first + i, fields,
              {{"rows", options.rows},
               {"capacity", options.capacity},
               {"num_inputs", options.num_inputs},
               {"outputs", tiles.columns}});
  }
  return Sequence({Execute(set)});
}

}  // namespace

TileRange tilesOf(const SpikeMatmulOptions& options, unsigned num_tiles) {
  constexpr unsigned kWordBytes = 8;  // of the widest load
  return spreadColumns(options.outputs, kWordBytes / (options.half_weights ? 2 : 4), num_tiles);
}

SpikeMatmulTensors addSpikeMatmulTensors(Graph& graph, const SpikeMatmulOptions& options, const Type& weights_type,
                                         const Tensor& weights) {
  const unsigned num_tiles = graph.getTarget().getNumTiles();
  const Type type = floatType(options.half_weights);
  const std::vector<Home> homes = spreadRows(options.rows, num_tiles);
  SpikeMatmulTensors tensors;
  tensors.tiles = tilesOf(options, num_tiles);
  tensors.ids = addAtHomes(graph, idType(options.long_ids), homes, options.capacity, "ids");
  tensors.values = addAtHomes(graph, type, homes, options.capacity, "values");
  const std::size_t columns = tensors.tiles.columns, elements = (options.num_inputs + std::size_t{1}) * columns;
  tensors.weights = weights.valid() ? weights : addBlocks(graph, weights_type, tensors.tiles, elements, "weights");
  tensors.out = addBlocks(graph, type, tensors.tiles, options.rows * columns, "out");
  return tensors;
}

Sequence addSpikeMatmul(Graph& graph, const SpikeMatmulOptions& options, const SpikeMatmulTensors& tensors) {
  return addVertices(graph, options, tensors.tiles, "snnjax::SpikeMatmul", "spike_matmul",
                     {{"ids", tensors.ids}, {"values", tensors.values}},
                     {{"weights", tensors.weights}, {"out", tensors.out}});
}

// Each tile's dot products with its own columns, and their sum.
Sequence addSpikeMatmulValuesGradient(Graph& graph, const SpikeMatmulOptions& options,
                                      const SpikeMatmulTensors& tensors) {
  const Tensor dots = addBlocks(graph, FLOAT, tensors.tiles, tensors.values.numElements(), "spike_matmul/dots");
  Sequence program =
      addVertices(graph, options, tensors.tiles, "snnjax::SpikeMatmulValuesGradient", "spike_matmul_backward",
                  {{"ids", tensors.ids}}, {{"weights", tensors.weights}, {"g", tensors.out}, {"d_values", dots}});
  popops::reduceWithOutput(graph, dots, tensors.values.flatten(), {0}, popops::Operation::ADD, program,
                           "spike_matmul/sum");
  return program;
}

Sequence addSpikeMatmulWeightsGradient(Graph& graph, const SpikeMatmulOptions& options,
                                       const SpikeMatmulTensors& tensors) {
  Sequence program;
  popops::zero(graph, tensors.weights, program, "spike_matmul/zero");
  program.add(addVertices(graph, options, tensors.tiles, "snnjax::SpikeMatmulWeightsGradient", "spike_matmul_backward",
                          {{"ids", tensors.ids}, {"values", tensors.values}},
                          {{"g", tensors.out}, {"d_weights", tensors.weights}}));
  return program;
}

}  // namespace snnjax::builders
