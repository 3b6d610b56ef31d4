// The backward pass of a scan, from the last layer to the first: neurons back through time, weight gradients of all
// rows, and what the lists pass on to the layer below.
#include <algorithm>
#include <numeric>
#include <poputil/VertexTemplates.hpp>

#include "backward_constants.hpp"
#include "loop.hpp"
#include "scan.hpp"

namespace snnjax::builders {
namespace {

using poplar::Tensor;
using poplar::UNSIGNED_SHORT;
using poplar::program::Copy;
using poplar::program::Execute;
using poplar::program::Sequence;
using poputil::templateVertex;

class ScanBackward {
 public:
  ScanBackward(poplar::Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors,
               const NetworkCotangents& cotangents)
      : graph_(graph), plan_(plan), tensors_(tensors), cotangents_(cotangents), no_clock_(graph, plan) {}

  Sequence program() {
    program_.add(listDenseInputs(graph_, plan_, tensors_, no_clock_));  // a record does not hold them
    Tensor g_spikes = inRows(cotangents_.layers.back().g_output);
    for (std::size_t l = plan_.layers.size(); l-- > 0;) {
      const Tensor g_current = addNeurons(l, g_spikes);
      if (!plan_.layers[l].leaky) addFirstStates(l);
      addWeights(l, g_current);
      if (l == 0 && !plan_.options.inputs_gradient) break;
      const Tensor values = addListGradient(l, g_current);
      if (l > 0) g_spikes = addDenseRows(l, values);
    }
    return program_;
  }

 private:
  std::string name(const char* what, std::size_t l) const {
    return "backward/" + std::string(what) + std::to_string(l);
  }
  poplar::ComputeSet addSet(const char* what, std::size_t l) {
    const poplar::ComputeSet set = graph_.addComputeSet(name(what, l));
    program_.add(Execute(set));
    return set;
  }
  std::size_t numRows() const { return std::size_t{plan_.options.batch} * plan_.options.num_steps; }

  // [blocks, num_steps * batch * columns] as rows.
  Tensor inRows(const Tensor& g_output) const {
    const TileRange& tiles = plan_.layers.back().tiles;
    const std::size_t batch = plan_.options.batch, steps = plan_.options.num_steps;
    return g_output.reshape({tiles.count, steps, batch, tiles.columns})
        .dimShuffle({0, 2, 1, 3})
        .reshape({tiles.count, numRows() * tiles.columns});
  }

  Tensor addNeurons(std::size_t l, const Tensor& g_spikes) {
    const LayerPlan& layer = plan_.layers[l];
    const Tensor g_current = addScanRows(graph_, plan_, l, layer.tiles.columns, name("g_current", l));
    const poplar::ComputeSet set = addSet("neurons", l);
    forEachTile(plan_, l, [&](const ScanTile& at) {
      if (layer.leaky) {
        addReadoutTile(set, at, g_spikes, g_current);
      } else {
        addNeuronsTile(set, at, g_spikes, g_current);
      }
    });
    return g_current;
  }

  // What neurons and readout have in common.
  std::vector<Field> fieldsOf(const ScanTile& at, const Tensor& g_current) const {
    const LayerTensors& tensors = tensors_.layers[at.l];
    const LayerCotangents& own = cotangents_.layers[at.l];
    std::vector<Field> fields = {{"decay", tensors.decay[at.block]},          {"gain", tensors.gain[at.block]},
                                 {"lengths", at.ofSamples(tensors_.lengths)}, {"g_v", at.ownStates(own.g_v)},
                                 {"g_current", at.ownRows(g_current)},        {"g_bias", at.ownStates(own.g_bias)}};
    if (!at.layer().learns_constants) return fields;
    fields.insert(fields.end(), {{"g_decay", at.ownStates(own.g_decay)}, {"g_gain", at.ownStates(own.g_gain)}});
    return fields;
  }
  std::vector<State> statesOf(const ScanTile& at) const {
    return {{"num_steps", plan_.options.num_steps}, {"batch", at.samples()}, {"neurons", at.layer().tiles.columns}};
  }

  void addReadoutTile(poplar::ComputeSet set, const ScanTile& at, const Tensor& g_output, const Tensor& g_current) {
    const bool learns = at.layer().learns_constants;
    std::vector<Field> fields = fieldsOf(at, g_current);
    fields.push_back({"g_output", at.ownRows(g_output)});
    if (learns) fields.push_back({"membranes", at.ownStates(tensors_.layers[at.l].membranes)});
    addVertex(graph_, set, templateVertex("snnjax::LeakyGradientScan", learns), at.tile(), fields, statesOf(at));
  }

  void addNeuronsTile(poplar::ComputeSet set, const ScanTile& at, const Tensor& g_spikes, const Tensor& g_current) {
    const NeuronOptions& neuron = at.layer().neuron;
    const LayerTensors& tensors = tensors_.layers[at.l];
    const LayerCotangents& own = cotangents_.layers[at.l];
    const bool learns = at.layer().learns_constants, reads_second = learns || neuron.raises_threshold;
    std::vector<Field> fields = fieldsOf(at, g_current);
    fields.insert(fields.end(), {{"g_spikes", at.ownRows(g_spikes)},
                                 {"g_counts", at.ownStates(own.g_counts)},
                                 {"threshold", tensors.threshold[at.block]},
                                 {"second_threshold", tensors.second_threshold[at.block]},
                                 {"membranes", at.ownStates(tensors.membranes)},
                                 {"g_last", at.ownStates(own.g_last)}});
    if (learns) fields.push_back({"g_threshold", at.ownStates(own.g_threshold)});
    std::vector<State> states = statesOf(at);
    const std::vector<State> switches = surrogateStates(neuron);
    states.insert(states.end(), switches.begin(), switches.end());
    if (neuron.second_state) {
      const Tensor w = at.ownStates(tensors.second_states);
      fields.insert(fields.end(), {{"second", tensors.second[at.block]},
                                   {"w", reads_second ? w : w.slice(0, 0)},
                                   {"g_w", at.ownStates(own.g_w)},
                                   {"g_last_w", at.ownStates(own.g_last_w)}});
      if (learns) fields.push_back({"g_second", at.ownStates(own.g_second)});
      states.push_back({"raises", reads_second});
    }
    addVertex(graph_, set, templateVertex("snnjax::LifGradientScan", neuron.second_state, learns), at.tile(), fields,
              states);
  }

  // After the first step, from what is left.
  void addFirstStates(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    const LayerTensors& tensors = tensors_.layers[l];
    const LayerCotangents& own = cotangents_.layers[l];
    const bool second = layer.neuron.second_state;
    const auto or_unused = [&](const Tensor& tensor) {
      return tensor.valid() ? tensor : addStates(graph_, plan_, l, 1, name("unused", l));
    };
    const Tensor g_threshold = or_unused(own.g_threshold), before = membraneRow(plan_, l, tensors, 0);
    const std::size_t row = std::size_t{plan_.options.batch} * layer.tiles.columns;
    const Tensor g_coupling = !second ? Tensor()
                              : own.g_second.valid()
                                  ? own.g_second.slice(ThresholdCoupling * row, (ThresholdCoupling + 1) * row, 1)
                                  : or_unused({});
    const poplar::ComputeSet set = addSet("first_states", l);
    forEachTile(plan_, l, [&](const ScanTile& at) {
      std::vector<State> states = surrogateStates(layer.neuron);
      states.insert(states.end(), {{"batch", at.samples()}, {"neurons", layer.tiles.columns}});
      std::vector<Field> fields = {{"g_v", at.ownStates(own.g_v)},
                                   {"g_last", at.ownStates(own.g_last)},
                                   {"threshold", tensors.threshold[at.block]},
                                   {"membranes", at.ownStates(before)},
                                   {"g_first", at.ownStates(own.g_first)},
                                   {"g_threshold", at.ownStates(g_threshold)}};
      if (second) {
        fields.insert(fields.end(), {{"second", tensors.second[at.block]},
                                     {"w", at.ownStates(secondRow(plan_, l, tensors, 0))},
                                     {"g_w", at.ownStates(own.g_w)},
                                     {"g_last_w", at.ownStates(own.g_last_w)},
                                     {"g_first_w", at.ownStates(own.g_first_w)},
                                     {"g_coupling", at.ownStates(g_coupling)}});
      }
      addVertex(graph_, set, templateVertex("snnjax::LifFirstGradient", second), at.tile(), fields, states);
    });
  }

  // Each group sums over its samples; then each of a block's tiles sums a part over the groups.
  void addWeights(std::size_t l, const Tensor& g_current) {
    const LayerPlan& layer = plan_.layers[l];
    const Tensor& to = cotangents_.layers[l].g_weights;
    const std::size_t groups = layer.sample_groups.size(), elements = to.dim(1);
    std::vector<Tensor> partial;
    for (std::size_t g = 0; g < groups; ++g) {
      partial.push_back(groups == 1 ? to : addGroup(graph_, layer, g, elements, name("partial", l)));
    }
    const bool valued = plan_.lists[l].valued;
    const poplar::ComputeSet set = addSet("weights", l);
    forEachTile(plan_, l, [&](const ScanTile& at) {
      std::vector<Field> fields = {{"lists", at.fromHomes(recordsOf(plan_, tensors_, l))},
                                   {"g_current", at.ownRows(g_current)},
                                   {"g_weights", partial[at.group][at.block]}};
      if (valued) fields.push_back({"values", at.fromHomes(valuesOf(plan_, tensors_, l))});
      addVertex(graph_, set, templateVertex("snnjax::RowsGradient", UNSIGNED_SHORT, valued), at.tile(), fields,
                rowStates(at));
    });
    if (groups == 1) return;
    const bool is_spread = !graph_.getTileMapping(to[0])[layer.tileOf(0, groups - 1)].empty();
    const Tensor sums = is_spread ? to : addSpread(graph_, layer, elements, name("sums", l));
    const poplar::ComputeSet sum = addSet("sum_of_groups", l);
    forEachTile(plan_, l, [&](const ScanTile& at) {
      const Part part = partOf(layer, elements, at.group);
      if (part.first == part.last) return;
      std::vector<Tensor> in;
      for (const Tensor& each : partial) in.push_back(each[at.block].slice(part.first, part.last));
      addVertex(graph_, sum, "snnjax::SumRows", at.tile(),
                {{"in", poplar::concat(in)}, {"out", sums[at.block].slice(part.first, part.last)}},
                {{"rows", static_cast<unsigned>(groups)}, {"columns", static_cast<unsigned>(part.last - part.first)}});
    });
    if (!is_spread) program_.add(Copy(sums, to));
  }

  // The record of all inputs, for the gradient of dense ones.
  Tensor allInputs() {
    const ListPlan& list = plan_.lists.front();
    std::vector<std::uint16_t> record(list.stride, static_cast<std::uint16_t>(list.num_neurons));
    record[kListHeader - 1] = 0;
    std::iota(record.begin() + kListHeader, record.begin() + kListHeader + list.num_neurons, std::uint16_t{0});
    const Tensor all =
        graph_.addConstant(UNSIGNED_SHORT, {record.size()}, poplar::ArrayRef<std::uint16_t>(record), "all_inputs");
    graph_.setTileMapping(all, list.homes.front().tile);
    return all;
  }

  // The gradients of the entries of list `l`, at the homes: [batch * num_steps * capacity]; those of the inputs where
  // they belong.
  Tensor addListGradient(std::size_t l, const Tensor& g_current) {
    const ListPlan& list = plan_.lists[l];
    const Tensor dots = addScanRows(graph_, plan_, l, list.capacity, name("dots", l));
    const Tensor all = list.dense ? allInputs() : Tensor();
    const poplar::ComputeSet set = addSet("dots", l);
    forEachTile(plan_, l, [&](const ScanTile& at) {
      std::vector<State> states = rowStates(at);
      if (list.dense) states[1] = {"stride", 0U};
      addVertex(graph_, set, templateVertex("snnjax::RowsDots", weightsType(plan_), UNSIGNED_SHORT), at.tile(),
                {{"lists", list.dense ? all : at.fromHomes(recordsOf(plan_, tensors_, l))},
                 {"weights", tensors_.layers[l].weights[at.block]},
                 {"g_current", at.ownRows(g_current)},
                 {"dots", at.ownRows(dots)}},
                states);
    });
    const Tensor values =
        l == 0 ? cotangents_.g_inputs
               : addAtHomes(graph_, poplar::FLOAT, list.homes, list.capacity, name("list_gradient", l)).flatten();
    const poplar::ComputeSet sum = addSet("sum_of_blocks", l);
    for (const Home& home : list.homes) {
      const std::size_t first = home.first_sample * list.capacity, count = home.samples * list.capacity;
      addVertex(graph_, sum, "snnjax::SumRows", home.tile,
                {{"in", dots.slice(first, first + count, 1)}, {"out", values.slice(first, first + count)}},
                {{"rows", plan_.layers[l].tiles.count}, {"columns", static_cast<unsigned>(count)}});
    }
    return values;
  }

  // The same for all neurons of the layer that fired: rows for its tiles, 0 for those not listed.
  Tensor addDenseRows(std::size_t l, const Tensor& values) {
    const ListPlan& list = plan_.lists[l];
    const LayerPlan& below = plan_.layers[l - 1];
    const unsigned columns = below.tiles.columns;
    const Tensor rows = addAtHomes(graph_, poplar::FLOAT, list.homes, below.paddedNeurons(), name("rows", l));
    const poplar::ComputeSet set = addSet("rows", l);
    std::vector<Tensor> blocks;
    for (const Home& home : list.homes) {
      const Tensor own = rowsOf(rows, home);
      const std::size_t first = home.first_sample * list.capacity, count = home.samples * list.capacity;
      addVertex(graph_, set, templateVertex("snnjax::ScatterList", UNSIGNED_SHORT), home.tile,
                {{"list", historyOf(plan_, list.stride, tensors_.lists[l].history, home)},
                 {"values", values.slice(first, first + count)},
                 {"row", own},
                 {"iteration", no_clock_.at(home.tile)}},
                {{"rows", home.samples},
                 {"stride", list.stride},
                 {"capacity", list.capacity},
                 {"columns", columns},
                 {"num_neurons", below.paddedNeurons()},
                 {"num_steps", 1U},
                 {"delay", 0U}});
      blocks.push_back(own.flatten().reshape({below.tiles.count, home.samples * columns}));
    }
    return poplar::concat(blocks, 1);
  }

  poplar::Graph& graph_;
  const NetworkPlan& plan_;
  const NetworkTensors& tensors_;
  const NetworkCotangents& cotangents_;
  NoClock no_clock_;
  Sequence program_;
};

}  // namespace

Sequence addScanBackward(poplar::Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors,
                         const NetworkCotangents& cotangents) {
  return ScanBackward(graph, plan, tensors, cotangents).program();
}

}  // namespace snnjax::builders
