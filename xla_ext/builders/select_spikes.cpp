#include "select_spikes.hpp"

#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>
#include <popops/Zero.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/VertexTemplates.hpp>

#include "vertices.hpp"

namespace snnjax::builders {
namespace {

using poplar::program::Execute;
using poplar::program::Sequence;
using poputil::templateVertex;

// The compute sets of the forward program, and the data between them.
struct Stages {
  poplar::ComputeSet candidates, lists, values;
  poplar::Tensor v;  // float [rows, neurons]
  poplar::Tensor dropped;
};

// The candidates of the rows of a block, listed by workers, and the lists of these joined.
void addLists(poplar::Graph& graph, const SelectSpikesOptions& options, const SelectSpikesTensors& tensors,
              const RowBlock& block, const Stages& stages) {
  const unsigned slots = neuronsOfShare(options.neurons);
  const auto add = [&](const poplar::Type& type, unsigned width, const char* name) {
    const poplar::Tensor tensor = graph.addVariable(type, {block.rows(), kShares, width}, name);
    graph.setTileMapping(tensor, block.tile);
    return tensor;
  };
  const poplar::Type ids = idType(options.long_ids);
  const poplar::Tensor records = add(ids, listStride(slots), "candidates/records"),
                       membranes = add(poplar::FLOAT, slots, "candidates/membranes");
  addVertex(graph, stages.candidates, templateVertex("snnjax::SelectCandidates", ids, false), block.tile,
            {{"v", stages.v.slice(block.first, block.last)},
             {"threshold", tensors.threshold},
             {"second_threshold", tensors.second_threshold},
             {"lists", records},
             {"membranes", membranes}},
            {{"rows", block.rows()}, {"neurons", options.neurons}, {"columns", options.neurons}});
  addVertex(graph, stages.lists, templateVertex("snnjax::CombineCandidates", ids), block.tile,
            {{"lists", records},
             {"membranes", membranes},
             {"list", tensors.records.slice(block.first, block.last)},
             {"dropped", stages.dropped.slice(block.first, block.last)}},
            {{"rows", block.rows()},
             {"stride", listStride(options.capacity)},
             {"capacity", options.capacity},
             {"num_neurons", options.neurons}});
}

void addBlock(poplar::Graph& graph, const SelectSpikesOptions& options, const SelectSpikesTensors& tensors,
              const RowBlock& block, const Stages& stages) {
  addLists(graph, options, tensors, block, stages);
  addVertex(graph, stages.values,
            templateVertex("snnjax::ListValues", floatType(options.half_membranes), idType(options.long_ids)),
            block.tile,
            {{"lists", tensors.records.slice(block.first, block.last)},
             {"values", tensors.values.slice(block.first, block.last)}},
            {{"rows", block.rows()}, {"stride", listStride(options.capacity)}, {"capacity", options.capacity}});
}

}  // namespace

SelectSpikesTensors addSelectSpikesTensors(poplar::Graph& graph, const SelectSpikesOptions& options) {
  SelectSpikesTensors tensors;
  tensors.blocks = spreadRows(options.rows, graph.getTarget().getNumTiles());
  tensors.v = addRows(graph, floatType(options.half_membranes), tensors.blocks, options.neurons, "v");
  tensors.threshold = graph.addVariable(poplar::FLOAT, {options.neurons}, "threshold");
  tensors.second_threshold = graph.addVariable(poplar::FLOAT, {options.neurons}, "second_threshold");
  poputil::mapTensorLinearly(graph, tensors.threshold);
  poputil::mapTensorLinearly(graph, tensors.second_threshold);
  tensors.records = addRows(graph, idType(options.long_ids), tensors.blocks, listStride(options.capacity), "records");
  tensors.values = addRows(graph, floatType(options.half_membranes), tensors.blocks, options.capacity, "values");
  return tensors;
}

Sequence addSelectSpikes(poplar::Graph& graph, const SelectSpikesOptions& options, const SelectSpikesTensors& tensors) {
  Sequence program;
  Stages stages;
  stages.v =
      options.half_membranes ? popops::cast(graph, tensors.v, poplar::FLOAT, program, "select_spikes/cast") : tensors.v;
  stages.dropped = addRows(graph, poplar::UNSIGNED_INT, tensors.blocks, 1, "dropped");
  popops::zero(graph, stages.dropped, program, "select_spikes/zero");
  stages.candidates = graph.addComputeSet("select_spikes/candidates");
  stages.lists = graph.addComputeSet("select_spikes/lists");
  stages.values = graph.addComputeSet("select_spikes/values");
  for (const RowBlock& block : tensors.blocks) addBlock(graph, options, tensors, block, stages);
  for (const poplar::ComputeSet set : {stages.candidates, stages.lists, stages.values}) program.add(Execute(set));
  return program;
}

SelectSpikesCotangents addSelectSpikesCotangents(poplar::Graph& graph, const SelectSpikesOptions& options,
                                                 const SelectSpikesTensors& tensors) {
  SelectSpikesCotangents cotangents;
  cotangents.g_values = addRows(graph, floatType(options.half_membranes), tensors.blocks, options.capacity, "g_values");
  cotangents.g_v = addRows(graph, floatType(options.half_membranes), tensors.blocks, options.neurons, "g_v");
  cotangents.g_threshold = graph.addVariable(poplar::FLOAT, {options.neurons}, "g_threshold");
  poputil::mapTensorLinearly(graph, cotangents.g_threshold);
  return cotangents;
}

Sequence addSelectSpikesBackward(poplar::Graph& graph, const SelectSpikesOptions& options,
                                 const SelectSpikesTensors& tensors, const SelectSpikesCotangents& cotangents) {
  const std::string vertex =
      templateVertex("snnjax::SelectSpikesBackward", floatType(options.half_membranes), idType(options.long_ids));
  const poplar::Tensor ids = tensors.records.slice(kListHeader, kListHeader + options.capacity, 1);
  const poplar::ComputeSet set = graph.addComputeSet("select_spikes_backward");
  for (const RowBlock& block : tensors.blocks) {
    addVertex(graph, set, vertex, block.tile,
              {{"v", tensors.v.slice(block.first, block.last)},
               {"threshold", tensors.threshold},
               {"ids", ids.slice(block.first, block.last)},
               {"g_values", cotangents.g_values.slice(block.first, block.last)},
               {"g_v", cotangents.g_v.slice(block.first, block.last)}},
              {{"rows", block.rows()},
               {"neurons", options.neurons},
               {"capacity", options.capacity},
               {"first_id", 0U},
               {"surrogate", static_cast<unsigned char>(options.surrogate)},
               {"slope", options.slope}});
  }
  Sequence program({Execute(set)});
  popops::reduceWithOutput(graph, cotangents.g_v, cotangents.g_threshold, {0}, popops::Operation::ADD, program,
                           "select_spikes/sum");
  popops::negInPlace(graph, cotangents.g_threshold, program, "select_spikes/negate");
  return program;
}

}  // namespace snnjax::builders
