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
  std::vector<State> states = currentStatesOfAll(at, list);
  states.push_back({"num_inputs", list.num_neurons});
  return states;
}

// The first step of rows of a block.
Tensor firstRows(const LayerTile& at, const Tensor& rows) {
  return at.ownRows(rows).reshape({at.samples(), at.plan.block_steps, at.layer().tiles.columns}).slice(0, 1, 1);
}

// Vertices at the homes, each with the records of all steps of a sample.
void addAtLastStep(Graph& graph, ComputeSet set, const NetworkPlan& plan, std::size_t l, const NetworkTensors& tensors,
                   const char* codelet, const std::vector<std::pair<const char*, Tensor>>& rows) {
  const ListPlan& list = plan.lists[l + 1];
  const Tensor history = inTime(plan, list, tensors.lists[l + 1].history, list.stride);
  for (const Home& home : list.sample_homes) {
    std::vector<Field> fields = {{"list", rowsOf(history, home, 1)}, {"lengths", rowsOf(tensors.lengths, home)}};
    for (const auto& [field, tensor] : rows) fields.push_back({field, rowsOf(tensor, home)});
    addVertex(graph, set, codelet, home.tile, fields,
              {{"rows", home.rows},
               {"stride", list.stride},
               {"capacity", list.capacity},
               {"num_neurons", list.num_neurons},
               {"num_steps", plan.options.num_steps}});
  }
}

void addLastGradient(Graph& graph, ComputeSet set, const NetworkPlan& plan, std::size_t l,
                     const NetworkTensors& network, const LayerCotangents& cotangents, const Tensor& g_spikes) {
  const LayerPlan& layer = plan.layers[l];
  const LayerTensors& own = network.layers[l];
  const unsigned steps = plan.options.num_steps;
  const bool raises = layer.neuron.raises_threshold;
  const ThresholdSums sums = thresholdSums(graph, plan, l, cotangents, raises);
  forEachTile(plan, l, [&](const LayerTile& at) {
    std::vector<Field> fields = {{"g_spikes", at.ownStates(g_spikes)},
                                 {"threshold", at.ofGroup(own.threshold)},
                                 {"membranes", at.ownStates(membraneRow(plan, l, own, steps))},
                                 {"g_last", at.ownStates(cotangents.g_last)},
                                 {"g_threshold", at.ownStates(sums.threshold)}};
    if (raises) {
      fields.insert(fields.end(), {{"second", at.ofGroup(own.second)},
                                   {"w", at.ownStates(secondRow(plan, l, own, steps))},
                                   {"g_last_w", at.ownStates(cotangents.g_last_w)},
                                   {"g_coupling", at.ownStates(sums.coupling)}});
    }
    addVertex(graph, set, templateVertex("snnjax::LifLastGradient", raises), at.tile(), fields,
              {{"batch", at.samples()},
               {"neurons", layer.tiles.columns},
               {"surrogate", static_cast<unsigned char>(layer.neuron.surrogate)},
               {"slope", layer.neuron.slope}});
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

Sequence addFirstSpikes(Graph& graph, const NetworkPlan& plan, const NetworkTensors& network, std::size_t l) {
  const LayerTensors& tensors = network.layers[l];
  if (!plan.options.first_spikes) {
    std::vector<Tensor> none = {tensors.first_current};
    if (plan.options.last_spikes) none.push_back(tensors.last_spikes);
    return Sequence({zeros(graph, none, nameOf(l, "no_spikes"))});
  }
  const ListPlan& list = plan.lists[l + 1];
  const Tensor all = addRecordOfAll(graph, list);
  const ComputeSet set = graph.addComputeSet(nameOf(l, "first_current"));
  forEachTile(plan, l, [&](const LayerTile& at) {
    addVertex(graph, set, templateVertex("snnjax::RowsCurrent", weightsType(plan), UNSIGNED_SHORT, true), at.tile(),
              {{"lists", all},
               {"values", at.ofSamples(tensors.first_spikes)},
               {"weights", tensors.recurrent[at.block]},
               {"current", at.ownStates(tensors.first_current)}},
              currentStatesOfAll(at, list));
  });
  Sequence program({Execute(set)});
  if (plan.options.last_spikes) program.add(Copy(tensors.first_spikes, tensors.last_spikes));
  return program;
}

Sequence addLastSpikes(Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors, std::size_t l) {
  if (!plan.options.last_spikes) return Sequence();
  const ComputeSet set = graph.addComputeSet(nameOf(l, "last_spikes"));
  addAtLastStep(graph, set, plan, l, tensors, "snnjax::LastSpikes", {{"last", tensors.layers[l].last_spikes}});
  return Sequence({Execute(set)});
}

Sequence addLastSpikesGradient(Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors, std::size_t l,
                               const LayerCotangents& cotangents) {
  if (!plan.options.last_spikes_gradient) return Sequence();
  const LayerPlan& layer = plan.layers[l];
  const ListPlan& list = plan.lists[l + 1];
  const Tensor listed = addAtHomes(graph, FLOAT, list.sample_homes, layer.neurons, nameOf(l, "g_listed"));
  const Tensor g_spikes = addStates(graph, plan, l, 1, nameOf(l, "g_last_spikes"));
  const ComputeSet masked = graph.addComputeSet(nameOf(l, "last_spikes_gradient"));
  addAtLastStep(graph, masked, plan, l, tensors, "snnjax::LastSpikesGradient",
                {{"g", cotangents.g_last_spikes}, {"g_listed", listed}});
  const ComputeSet through = graph.addComputeSet(nameOf(l, "last_gradient"));
  addLastGradient(graph, through, plan, l, tensors, cotangents, g_spikes);
  return Sequence({Execute(masked), zeros(graph, {g_spikes}, nameOf(l, "zero_spare_columns")),
                   Copy(listed, asRows(g_spikes, layer.tiles, plan.options.batch, layer.neurons)), Execute(through)});
}

Sequence addFirstSpikesGradient(Graph& graph, const NetworkPlan& plan, const NetworkTensors& network, std::size_t l,
                                const LayerCotangents& cotangents, const Tensor& g_current) {
  const LayerPlan& layer = plan.layers[l];
  const ListPlan& list = plan.lists[l + 1];
  const std::size_t batch = plan.options.batch, neurons = layer.neurons;
  Sequence program;
  if (!cotangents.g_first_spikes.valid()) return program;
  const Tensor all = addRecordOfAll(graph, list);
  std::vector<Tensor> groups;
  for (std::size_t g = 0; g < layer.sample_groups.size(); ++g) {
    groups.push_back(addGroup(graph, FLOAT, layer, g, layer.sample_groups[g].count * neurons, nameOf(l, "dots")));
  }
  const ComputeSet set = graph.addComputeSet(nameOf(l, "first_spikes_gradient"));
  forEachTile(plan, l, [&](const LayerTile& at) {
    addVertex(graph, set, templateVertex("snnjax::RowsDots", weightsType(plan), UNSIGNED_SHORT), at.tile(),
              {{"lists", all},
               {"weights", network.layers[l].recurrent[at.block]},
               {"g_current", firstRows(at, g_current)},
               {"dots", groups[at.group][at.block]}},
              allStates(at, list));
  });
  program.add(Execute(set));
  const Tensor dots = poplar::concat(groups, 1);    // [blocks, batch * neurons]
  const Tensor& g_last = cotangents.g_last_spikes;  // sequences without steps pass their gradient through
  popops::reduceWithOutput(graph, g_last.valid() ? poplar::concat(dots, g_last.reshape({1, batch * neurons})) : dots,
                           cotangents.g_first_spikes.flatten(), {0}, popops::Operation::ADD, program,
                           nameOf(l, "sum_first_dots"));
  return program;
}

RowsRead readFirstSpikes(Graph& graph, const NetworkPlan& plan, const NetworkTensors& network, std::size_t l,
                         const Tensor& g_current) {
  const ListPlan& list = plan.lists[l + 1];
  const Tensor all = addRecordOfAll(graph, list), values = network.layers[l].first_spikes;
  return {.valued = true,
          .fields =
              [all, values, g_current](const LayerTile& at) {
                return std::vector<Field>{
                    {"lists", all}, {"values", at.ofSamples(values)}, {"g_current", firstRows(at, g_current)}};
              },
          .states = [&list](const LayerTile& at) { return allStates(at, list); }};
}

}  // namespace snnjax::builders
