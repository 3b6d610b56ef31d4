#include "select_spikes.hpp"

#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>
#include <poputil/TileMapping.hpp>

namespace snnjax::builders {
namespace {

// The smaller of both thresholds, on the tiles of the first: membranes above it are candidates. One that is NaN, above
// which nothing lies, leaves the other.
Tensor leastThreshold(Graph& graph, const Tensor& threshold, const Tensor& second_threshold, Sequence& program,
                      const std::string& name) {
  using namespace popops::expr;
  const auto takes_second = Or(Lt(_2, _1), NotEqual(_1, _1));
  return popops::map(graph, Select(_2, _1, takes_second), {threshold, second_threshold}, program, name);
}

}  // namespace

SelectionSets::SelectionSets(Graph& graph, const std::string& name, const std::string& suffix, bool adds)
    : graph_(graph),
      name_(name),
      adds_(adds),
      candidates_(graph.addComputeSet(name + "/candidates" + suffix)),
      cuts_(graph.addComputeSet(name + "/cuts" + suffix)),
      lists_(graph.addComputeSet(name + "/lists" + suffix)),
      program_({Execute(candidates_), Execute(cuts_), Execute(lists_)}) {}

void SelectionSets::add(const Selection& own, const std::string& vertex, std::vector<Field> fields,
                        std::vector<State> states) {
  const unsigned slots = neuronsOfShare(own.neurons);
  const Type ids = own.list.elementType();
  const auto tensor = [&](const Type& type, std::size_t width, const char* part) {
    const Tensor added = graph_.addVariable(type, {own.rows, width}, name_ + "/" + part);
    graph_.setTileMapping(added, own.tile);
    return added;
  };
  const Tensor records = tensor(ids, std::size_t{kShares} * listStride(slots), "parts"),
               membranes = tensor(FLOAT, std::size_t{kShares} * slots, "membranes"),
               cuts = tensor(UNSIGNED_INT, kCutWords, "cuts"), kept = tensor(UNSIGNED_INT, kKeptWords, "kept");
  fields.insert(fields.end(), {{"lists", records}, {"membranes", membranes}});
  states.insert(states.end(), {{"rows", own.rows}, {"neurons", own.neurons}});
  addVertex(graph_, candidates_, vertex, own.tile, fields, states);
  addVertex(graph_, cuts_, templateVertex("snnjax::CutCandidates", ids), own.tile,
            {{"lists", records}, {"membranes", membranes}, {"cuts", cuts}, {"kept", kept}, {"dropped", own.dropped}},
            {{"rows", own.rows}, {"capacity", own.capacity}, {"num_neurons", own.neurons}, {"adds", adds_}});
  addVertex(graph_, lists_, templateVertex("snnjax::JoinCandidates", ids), own.tile,
            {{"lists", records}, {"membranes", membranes}, {"cuts", cuts}, {"kept", kept}, {"list", own.list}},
            {{"rows", own.rows}, {"stride", listStride(own.capacity)}, {"num_neurons", own.neurons}});
}

SelectSpikesTensors addSelectSpikesTensors(Graph& graph, const SelectSpikesOptions& options) {
  SelectSpikesTensors tensors;
  tensors.homes = spreadRows(options.rows, graph.getTarget().getNumTiles());
  tensors.v = addAtHomes(graph, floatType(options.half_membranes), tensors.homes, options.neurons, "v");
  tensors.threshold = graph.addVariable(FLOAT, {options.neurons}, "threshold");
  tensors.second_threshold = graph.addVariable(FLOAT, {options.neurons}, "second_threshold");
  poputil::mapTensorLinearly(graph, tensors.threshold);
  poputil::mapTensorLinearly(graph, tensors.second_threshold);
  tensors.records = addAtHomes(graph, idType(options.long_ids), tensors.homes, listStride(options.capacity), "records");
  tensors.values = addAtHomes(graph, floatType(options.half_membranes), tensors.homes, options.capacity, "values");
  return tensors;
}

Sequence addSelectSpikes(Graph& graph, const SelectSpikesOptions& options, const SelectSpikesTensors& tensors) {
  Sequence program;
  const Tensor v =
      options.half_membranes ? popops::cast(graph, tensors.v, FLOAT, program, "select_spikes/cast") : tensors.v;
  const Tensor dropped = addAtHomes(graph, UNSIGNED_INT, tensors.homes, 1, "dropped");
  const Tensor least =
      leastThreshold(graph, tensors.threshold, tensors.second_threshold, program, "select_spikes/least");
  SelectionSets sets(graph, "select_spikes");
  const ComputeSet values = graph.addComputeSet("select_spikes/values");
  const std::string value_vertex =
      templateVertex("snnjax::ListValues", tensors.values.elementType(), tensors.records.elementType());
  for (const Home& home : tensors.homes) {
    sets.add(
        {home.tile, home.rows, options.neurons, options.capacity, rowsOf(tensors.records, home), rowsOf(dropped, home)},
        templateVertex("snnjax::SelectCandidates", idType(options.long_ids)),
        {{"v", rowsOf(v, home)}, {"threshold", tensors.threshold}, {"least", least}}, {});
    addVertex(graph, values, value_vertex, home.tile,
              {{"lists", rowsOf(tensors.records, home)}, {"values", rowsOf(tensors.values, home)}},
              {{"rows", home.rows}, {"stride", listStride(options.capacity)}, {"capacity", options.capacity}});
  }
  program.add(sets.program());
  program.add(Execute(values));
  return program;
}

SelectSpikesGradients addSelectSpikesBackward(Graph& graph, const SelectSpikesOptions& options,
                                              const SelectSpikesTensors& tensors, Sequence& program) {
  const Type type = floatType(options.half_membranes);
  const std::string vertex = templateVertex("snnjax::SelectSpikesBackward", type, idType(options.long_ids));
  const Tensor ids = tensors.records.slice(kListHeader, kListHeader + options.capacity, 1);
  SelectSpikesGradients gradients;
  gradients.v = addAtHomes(graph, type, tensors.homes, options.neurons, "g_v");
  const ComputeSet set = graph.addComputeSet("select_spikes_backward");
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
      popops::reduce(graph, gradients.v, FLOAT, {0}, popops::Operation::ADD, program, "select_spikes/sum");
  popops::negInPlace(graph, gradients.threshold, program, "select_spikes/negate");
  return gradients;
}

}  // namespace snnjax::builders
