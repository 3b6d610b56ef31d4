#include "select_spikes.hpp"

#include <algorithm>
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

// The candidates of the rows of a block, as records of parts of rows.
struct Candidates {
  unsigned parts = 1;  // of a row: one per worker where there are fewer rows than workers
  unsigned slots = 0;
  poplar::Tensor records;    // ids [rows * parts, stride]
  poplar::Tensor membranes;  // float [rows * parts, slots], of the listed ids
};

Candidates addCandidates(poplar::Graph& graph, const SelectSpikesOptions& options, const SelectSpikesTensors& tensors,
                         const RowBlock& block, const Stages& stages) {
  const unsigned workers = graph.getTarget().getNumWorkerContexts();
  Candidates candidates;
  candidates.parts = block.rows() < workers ? workers : 1;
  const unsigned chunk = (options.neurons + candidates.parts - 1) / candidates.parts;
  candidates.slots = (std::min(options.capacity, chunk) + 1) / 2 * 2;  // whole 64-bit words of membranes
  const unsigned stride = listStride(candidates.slots);
  const std::size_t items = std::size_t{block.rows()} * candidates.parts;
  candidates.records = graph.addVariable(idType(options.long_ids), {items, stride}, "candidates/records");
  candidates.membranes = graph.addVariable(poplar::FLOAT, {items, candidates.slots}, "candidates/membranes");
  graph.setTileMapping(candidates.records, block.tile);
  graph.setTileMapping(candidates.membranes, block.tile);
  addVertex(graph, stages.candidates, templateVertex("snnjax::SelectCandidates", idType(options.long_ids), false),
            block.tile,
            {{"v", stages.v.slice(block.first, block.last)},
             {"threshold", tensors.threshold},
             {"second_threshold", tensors.second_threshold},
             {"lists", candidates.records},
             {"membranes", candidates.membranes}},
            {{"rows", block.rows()},
             {"neurons", options.neurons},
             {"columns", options.neurons},
             {"parts", candidates.parts},
             {"slots", candidates.slots},
             {"stride", stride},
             {"capacity", options.capacity},
             {"first_id", 0U},
             {"num_neurons", options.neurons}});
  return candidates;
}

// Their combined lists. One vertex combines the parts of a row; rows of one part each share a vertex.
void addLists(poplar::Graph& graph, const SelectSpikesOptions& options, const SelectSpikesTensors& tensors,
              const RowBlock& block, const Candidates& candidates, const Stages& stages) {
  const unsigned parts = candidates.parts, rows = parts == 1 ? block.rows() : 1;
  for (unsigned row = 0; row < block.rows(); row += rows) {
    const std::size_t first = block.first + row, item = std::size_t{row} * parts;
    addVertex(graph, stages.lists, templateVertex("snnjax::CombineCandidates", idType(options.long_ids)), block.tile,
              {{"lists", candidates.records.slice(item, item + rows * parts)},
               {"membranes", candidates.membranes.slice(item, item + rows * parts)},
               {"list", tensors.records.slice(first, first + rows)},
               {"dropped", stages.dropped.slice(first, first + rows)}},
              {{"rows", rows},
               {"num_lists", parts},
               {"slots", candidates.slots},
               {"stride_in", listStride(candidates.slots)},
               {"stride", listStride(options.capacity)},
               {"capacity", options.capacity},
               {"num_neurons", options.neurons}});
  }
}

void addBlock(poplar::Graph& graph, const SelectSpikesOptions& options, const SelectSpikesTensors& tensors,
              const RowBlock& block, const Stages& stages) {
  addLists(graph, options, tensors, block, addCandidates(graph, options, tensors, block, stages), stages);
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
