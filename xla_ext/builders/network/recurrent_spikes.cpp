// The spikes that a recurrent layer's state carries from call to call: numbers of all neurons, dense at the homes of
// the samples. Those before the first step may be any; tiles read them as a list of all neurons with values.
#include <algorithm>
#include <numeric>
#include <popops/Reduce.hpp>

#include "builders/network/recurrent.hpp"

namespace snnjax::builders {
namespace {

std::string nameOf(std::size_t l, const char* part) { return "layer" + std::to_string(l) + "/" + part; }

// One record for all samples.
std::vector<State> currentStatesOfAll(const LayerTile& at, const ListPlan& list) {
  return {
      {"rows", at.samples()}, {"stride", 0U}, {"capacity", list.num_neurons}, {"neurons", at.layer().tiles.columns}};
}
std::vector<State> allStates(const LayerTile& at, const ListPlan& list) {
  return with(currentStatesOfAll(at, list), {{"num_inputs", list.num_neurons}});
}

// The first step of rows of a block.
Tensor firstRows(const LayerTile& at, const Tensor& rows) {
  return at.ownRows(rows).reshape({at.samples(), at.of.plan.block_steps, at.layer().tiles.columns}).slice(0, 1, 1);
}

// Vertices at the homes, each with the records of all steps of a sample.
void addAtLastStep(const LayerPass& of, ComputeSet set, const char* codelet, const std::vector<Field>& rows) {
  const ListPlan& list = of.plan.lists[of.l + 1];
  const Tensor history = inTime(of.plan, list, of.pass.tensors.lists[of.l + 1].history, list.stride);
  for (const Home& home : list.sample_homes) {
    std::vector<Field> fields = {{"list", rowsOf(history, home, 1)},
                                 {"lengths", rowsOf(of.pass.tensors.lengths, home)}};
    for (const auto& [field, tensor] : rows) fields.push_back({field, rowsOf(tensor, home)});
    addVertex(of.graph, set, codelet, home.tile, fields,
              with(recordStates(home.rows, list),
                   {{"num_neurons", list.num_neurons}, {"num_steps", of.plan.options.num_steps}}));
  }
}

void addLastGradient(const LayerPass& of, ComputeSet set, const Tensor& g_spikes) {
  const LayerTensors& own = of.tensors;
  const NeuronOptions& neuron = of.layer.neuron;
  const unsigned steps = of.plan.options.num_steps;
  const bool raises = neuron.raises_threshold;
  const ThresholdSums sums = thresholdSums(of, raises);
  forEachTile(of, [&](const LayerTile& at) {
    std::vector<Field> fields = {{"g_spikes", at.ownStates(g_spikes)},
                                 {"threshold", at.ofGroup(own.threshold)},
                                 {"membranes", at.ownStates(rowOf(of.plan, of.l, own.membranes, steps))},
                                 {"g_last", at.ownStates(of.cotangents().g_last)},
                                 {"g_threshold", at.ownStates(sums.threshold)}};
    if (raises) {
      fields.insert(fields.end(), {{"second", at.ofGroup(own.second)},
                                   {"w", at.ownStates(rowOf(of.plan, of.l, own.second_states, steps))},
                                   {"g_last_w", at.ownStates(of.cotangents().g_last_w)},
                                   {"g_coupling", at.ownStates(sums.coupling)}});
    }
    addVertex(of.graph, set, templateVertex("snnjax::LifLastGradient", raises), at.tile(), fields,
              {{"batch", at.samples()},
               {"neurons", of.layer.tiles.columns},
               {"surrogate", static_cast<unsigned char>(neuron.surrogate)},
               {"slope", neuron.slope}});
  });
}

}  // namespace

Tensor addRecordOfAll(Graph& graph, const ListPlan& list) {
  std::vector<std::uint16_t> record(listStride(list.num_neurons), static_cast<std::uint16_t>(list.num_neurons));
  for (unsigned share = 1; share < kShares; ++share) {
    record[kStarts + share - 1] =
        static_cast<std::uint16_t>(std::min(share * neuronsOfShare(list.num_neurons), list.num_neurons));
  }
  std::iota(record.begin() + kListHeader, record.begin() + kListHeader + list.num_neurons, std::uint16_t{0});
  const Tensor all =
      graph.addConstant(UNSIGNED_SHORT, {record.size()}, poplar::ArrayRef<std::uint16_t>(record), "all_neurons");
  graph.setTileMapping(all, list.homes.front().tile);
  return all;
}

Sequence addFirstSpikes(const LayerPass& of) {
  const LayerTensors& tensors = of.tensors;
  if (!of.plan.options.first_spikes) {
    std::vector<Tensor> none = {tensors.first_current};
    if (of.plan.options.last_spikes) none.push_back(tensors.last_spikes);
    return Sequence({zeros(of.graph, none, nameOf(of.l, "no_spikes"))});
  }
  const ListPlan& list = of.plan.lists[of.l + 1];
  const Tensor all = addRecordOfAll(of.graph, list);
  const ComputeSet set = of.graph.addComputeSet(nameOf(of.l, "first_current"));
  const std::string type = templateVertex("snnjax::RowsCurrent", weightsType(of.plan), true);
  forEachTile(of, [&](const LayerTile& at) {
    addVertex(of.graph, set, type, at.tile(),
              {{"lists", all},
               {"values", at.fromHomes(tensors.first_spikes)},
               {"weights", tensors.recurrent[at.block]},
               {"current", at.ownStates(tensors.first_current)}},
              currentStatesOfAll(at, list));
  });
  Sequence program({Execute(set)});
  if (of.plan.options.last_spikes) program.add(Copy(tensors.first_spikes, tensors.last_spikes));
  return program;
}

Sequence addLastSpikes(const LayerPass& of) {
  if (!of.plan.options.last_spikes) return Sequence();
  const ComputeSet set = of.graph.addComputeSet(nameOf(of.l, "last_spikes"));
  addAtLastStep(of, set, "snnjax::LastSpikes", {{"last", of.tensors.last_spikes}});
  return Sequence({Execute(set)});
}

Sequence addLastSpikesGradient(const LayerPass& of) {
  if (!of.plan.options.last_spikes_gradient) return Sequence();
  const LayerPlan& layer = of.layer;
  const std::vector<Home>& homes = of.plan.lists[of.l + 1].sample_homes;
  const Tensor listed = addAtHomes(of.graph, FLOAT, homes, layer.neurons, nameOf(of.l, "g_listed"));
  const Tensor g_spikes = addStates(of.graph, of.plan, of.l, 1, nameOf(of.l, "g_last_spikes"));
  const ComputeSet masked = of.graph.addComputeSet(nameOf(of.l, "last_spikes_gradient"));
  addAtLastStep(of, masked, "snnjax::LastSpikesGradient", {{"g", of.cotangents().g_last_spikes}, {"g_listed", listed}});
  const ComputeSet through = of.graph.addComputeSet(nameOf(of.l, "last_gradient"));
  addLastGradient(of, through, g_spikes);
  return Sequence({Execute(masked), zeros(of.graph, {g_spikes}, nameOf(of.l, "zero_spare_columns")),
                   Copy(listed, asRows(g_spikes, layer.tiles, of.plan.options.batch, layer.neurons)),
                   Execute(through)});
}

Sequence addFirstSpikesGradient(const LayerPass& of, const Tensor& g_current) {
  const LayerPlan& layer = of.layer;
  const LayerCotangents& cotangents = of.cotangents();
  const ListPlan& list = of.plan.lists[of.l + 1];
  const std::size_t batch = of.plan.options.batch, neurons = layer.neurons;
  Sequence program;
  if (!cotangents.g_first_spikes.valid()) return program;
  const Tensor all = addRecordOfAll(of.graph, list);
  const std::vector<Tensor> groups =
      addGroups(of.graph, FLOAT, layer, nameOf(of.l, "dots"), [=](unsigned samples) { return samples * neurons; });
  const ComputeSet set = of.graph.addComputeSet(nameOf(of.l, "first_spikes_gradient"));
  const std::string type = templateVertex("snnjax::RowsDots", weightsType(of.plan));
  forEachTile(of, [&](const LayerTile& at) {
    addVertex(of.graph, set, type, at.tile(),
              {{"lists", all},
               {"weights", of.tensors.recurrent[at.block]},
               {"g_current", firstRows(at, g_current)},
               {"dots", groups[at.group][at.block]}},
              allStates(at, list));
  });
  program.add(Execute(set));
  const Tensor dots = poplar::concat(groups, 1);    // [blocks, batch * neurons]
  const Tensor& g_last = cotangents.g_last_spikes;  // sequences without steps pass their gradient through
  popops::reduceWithOutput(of.graph, g_last.valid() ? poplar::concat(dots, g_last.reshape({1, batch * neurons})) : dots,
                           cotangents.g_first_spikes.flatten(), {0}, popops::Operation::ADD, program,
                           nameOf(of.l, "sum_first_dots"));
  return program;
}

Program addFirstSpikesWeights(const LayerPass& of, const WeightsGradient& weights, const Tensor& g_current) {
  const ListPlan& list = of.plan.lists[of.l + 1];
  const Tensor all = addRecordOfAll(of.graph, list);
  const auto fields = [&](const LayerTile& at) -> std::vector<Field> {
    return {{"lists", all}, {"values", at.fromHomes(of.tensors.first_spikes)}, {"g_current", firstRows(at, g_current)}};
  };
  return weights.add(true, fields, [&](const LayerTile& at) { return allStates(at, list); });
}

}  // namespace snnjax::builders
