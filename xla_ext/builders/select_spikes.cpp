#include "select_spikes.hpp"

#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>
#include <popops/Zero.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/VertexTemplates.hpp>

namespace snnjax::builders {
namespace {

using poplar::program::Execute;
using poplar::program::Sequence;
using poputil::templateVertex;

void addValues(poplar::Graph& graph, poplar::ComputeSet set, const SelectSpikesOptions& options,
               const SelectSpikesTensors& tensors, const Home& home) {
  addVertex(graph, set,
            templateVertex("snnjax::ListValues", floatType(options.half_membranes), idType(options.long_ids)),
            home.tile, {{"lists", rowsOf(tensors.records, home)}, {"values", rowsOf(tensors.values, home)}},
            {{"rows", home.rows}, {"stride", listStride(options.capacity)}, {"capacity", options.capacity}});
}

}  // namespace

poplar::Tensor leastThreshold(poplar::Graph& graph, const poplar::Tensor& threshold,
                              const poplar::Tensor& second_threshold, Sequence& program, const std::string& name) {
  using namespace popops::expr;
  const auto takes_second = Or(Lt(_2, _1), NotEqual(_1, _1));
  return popops::map(graph, Select(_2, _1, takes_second), {threshold, second_threshold}, program, name);
}

void addSelection(poplar::Graph& graph, const SelectionSets& sets, unsigned tile, const Selection& from,
                  const std::string& name) {
  const unsigned slots = neuronsOfShare(from.neurons);
  const poplar::Type ids = from.list.elementType();
  const auto add = [&](const poplar::Type& type, unsigned width, const char* part) {
    const poplar::Tensor tensor = graph.addVariable(type, {from.rows, kShares, width}, name + part);
    graph.setTileMapping(tensor, tile);
    return tensor;
  };
  const poplar::Tensor records = add(ids, listStride(slots), "/records"),
                       membranes = add(poplar::FLOAT, slots, "/membranes");
  std::vector<Field> fields = {{"v", from.v},
                               {"threshold", from.threshold},
                               {"least", from.least},
                               {"lists", records},
                               {"membranes", membranes}};
  if (from.raise.valid()) fields.push_back({"raise", from.raise});
  addVertex(graph, sets.candidates, templateVertex("snnjax::SelectCandidates", ids, from.raise.valid()), tile, fields,
            {{"rows", from.rows}, {"neurons", from.neurons}, {"columns", from.columns}});
  addVertex(graph, sets.lists, templateVertex("snnjax::CombineCandidates", ids), tile,
            {{"lists", records}, {"membranes", membranes}, {"list", from.list}, {"dropped", from.dropped}},
            {{"rows", from.rows},
             {"stride", listStride(from.capacity)},
             {"capacity", from.capacity},
             {"num_neurons", from.neurons}});
}

SelectSpikesTensors addSelectSpikesTensors(poplar::Graph& graph, const SelectSpikesOptions& options) {
  SelectSpikesTensors tensors;
  tensors.homes = spreadRows(options.rows, graph.getTarget().getNumTiles());
  tensors.v = addAtHomes(graph, floatType(options.half_membranes), tensors.homes, options.neurons, "v");
  tensors.threshold = graph.addVariable(poplar::FLOAT, {options.neurons}, "threshold");
  tensors.second_threshold = graph.addVariable(poplar::FLOAT, {options.neurons}, "second_threshold");
  poputil::mapTensorLinearly(graph, tensors.threshold);
  poputil::mapTensorLinearly(graph, tensors.second_threshold);
  tensors.records = addAtHomes(graph, idType(options.long_ids), tensors.homes, listStride(options.capacity), "records");
  tensors.values = addAtHomes(graph, floatType(options.half_membranes), tensors.homes, options.capacity, "values");
  return tensors;
}

Sequence addSelectSpikes(poplar::Graph& graph, const SelectSpikesOptions& options, const SelectSpikesTensors& tensors) {
  Sequence program;
  const poplar::Tensor v =
      options.half_membranes ? popops::cast(graph, tensors.v, poplar::FLOAT, program, "select_spikes/cast") : tensors.v;
  const poplar::Tensor dropped = addAtHomes(graph, poplar::UNSIGNED_INT, tensors.homes, 1, "dropped");
  popops::zero(graph, dropped, program, "select_spikes/zero");
  const poplar::Tensor least =
      leastThreshold(graph, tensors.threshold, tensors.second_threshold, program, "select_spikes/least");
  const SelectionSets sets = {graph.addComputeSet("select_spikes/candidates"),
                              graph.addComputeSet("select_spikes/lists")};
  const poplar::ComputeSet values = graph.addComputeSet("select_spikes/values");
  for (const Home& home : tensors.homes) {
    addSelection(graph, sets, home.tile,
                 {.rows = home.rows,
                  .neurons = options.neurons,
                  .columns = options.neurons,
                  .capacity = options.capacity,
                  .v = rowsOf(v, home),
                  .raise = {},
                  .threshold = tensors.threshold,
                  .least = least,
                  .list = rowsOf(tensors.records, home),
                  .dropped = rowsOf(dropped, home)},
                 "candidates");
    addValues(graph, values, options, tensors, home);
  }
  for (const poplar::ComputeSet set : {sets.candidates, sets.lists, values}) program.add(Execute(set));
  return program;
}

SelectSpikesGradients addSelectSpikesBackward(poplar::Graph& graph, const SelectSpikesOptions& options,
                                              const SelectSpikesTensors& tensors, Sequence& program) {
  const poplar::Type type = floatType(options.half_membranes);
  const std::string vertex = templateVertex("snnjax::SelectSpikesBackward", type, idType(options.long_ids));
  const poplar::Tensor ids = tensors.records.slice(kListHeader, kListHeader + options.capacity, 1);
  SelectSpikesGradients gradients;
  gradients.v = addAtHomes(graph, type, tensors.homes, options.neurons, "g_v");
  const poplar::ComputeSet set = graph.addComputeSet("select_spikes_backward");
  for (const Home& home : tensors.homes) {
    addVertex(graph, set, vertex, home.tile,
              {{"v", rowsOf(tensors.v, home)},
               {"threshold", tensors.threshold},
               {"ids", rowsOf(ids, home)},
               {"g_values", rowsOf(tensors.values, home)},
               {"g_v", rowsOf(gradients.v, home)}},
              {{"rows", home.rows},
               {"neurons", options.neurons},
               {"capacity", options.capacity},
               {"surrogate", static_cast<unsigned char>(options.surrogate)},
               {"slope", options.slope}});
  }
  program.add(Execute(set));
  gradients.threshold =
      popops::reduce(graph, gradients.v, poplar::FLOAT, {0}, popops::Operation::ADD, program, "select_spikes/sum");
  popops::negInPlace(graph, gradients.threshold, program, "select_spikes/negate");
  return gradients;
}

}  // namespace snnjax::builders
