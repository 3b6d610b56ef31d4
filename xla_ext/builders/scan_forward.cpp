// The forward pass of a scan: currents of all steps, neurons over time, the lists of all rows.
#include <algorithm>
#include <popops/Reduce.hpp>
#include <poputil/VertexTemplates.hpp>

#include "loop.hpp"
#include "scan.hpp"

namespace snnjax::builders {
namespace {

using poplar::Tensor;
using poplar::UNSIGNED_SHORT;
using poplar::program::Execute;
using poplar::program::Sequence;
using poputil::templateVertex;

constexpr unsigned kWorkers = 6, kCandidates = 64;

// What the selection reads: rows of float [blocks, batch * num_steps * columns].
struct Selectable {
  Tensor v, raise;
};

class ScanForward {
 public:
  ScanForward(poplar::Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors)
      : graph_(graph), plan_(plan), tensors_(tensors), no_clock_(graph, plan) {}

  Sequence program() {
    zeroSpareRows();
    program_.add(listDenseInputs(graph_, plan_, tensors_, no_clock_));
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) {
      const Tensor current = addCurrents(l);
      if (plan_.layers[l].leaky) {
        addReadout(l, current);
        continue;
      }
      const Selectable selectable = addNeurons(l, current);
      if (plan_.firesLists(l)) addSelection(l, selectable);
    }
    return program_;
  }

 private:
  std::string name(const char* what, std::size_t l) const { return "forward/" + std::string(what) + std::to_string(l); }
  poplar::ComputeSet addSet(const char* what, std::size_t l) {
    const poplar::ComputeSet set = graph_.addComputeSet(name(what, l));
    program_.add(Execute(set));
    return set;
  }

  void zeroSpareRows() {
    std::vector<Tensor> rows;
    for (const LayerTensors& layer : tensors_.layers) {
      rows.insert(rows.end(), layer.zero_rows.begin(), layer.zero_rows.end());
    }
    program_.add(zeros(graph_, rows, "forward/zero_rows"));
  }

  Tensor addCurrents(std::size_t l) {
    const bool valued = plan_.lists[l].valued;
    const Tensor current = addScanRows(graph_, plan_, l, plan_.layers[l].tiles.columns, name("current", l));
    const std::string type = templateVertex("snnjax::RowsCurrent", weightsType(plan_), UNSIGNED_SHORT, valued);
    const poplar::ComputeSet set = addSet("currents", l);
    forEachTile(plan_, l, [&](const ScanTile& at) {
      std::vector<Field> fields = {{"lists", at.fromHomes(recordsOf(plan_, tensors_, l))},
                                   {"weights", tensors_.layers[l].weights[at.block]},
                                   {"current", at.ownRows(current)}};
      if (valued) fields.push_back({"values", at.fromHomes(valuesOf(plan_, tensors_, l))});
      addVertex(graph_, set, type, at.tile(), fields, rowStates(at));
    });
    return current;
  }

  // What neurons and readout have in common.
  std::vector<Field> fieldsOf(const ScanTile& at, const Tensor& current) const {
    const LayerTensors& own = tensors_.layers[at.l];
    return {{"current", at.ownRows(current)},
            {"bias", own.bias[at.block]},
            {"decay", own.decay[at.block]},
            {"gain", own.gain[at.block]},
            {"lengths", at.ofSamples(tensors_.lengths)},
            {"membranes", at.ownStates(own.membranes)}};
  }
  std::vector<State> statesOf(const ScanTile& at) const {
    return {{"num_steps", plan_.options.num_steps}, {"batch", at.samples()}, {"neurons", at.layer().tiles.columns}};
  }

  void addReadout(std::size_t l, const Tensor& current) {
    const poplar::ComputeSet set = addSet("readout", l);
    forEachTile(plan_, l, [&](const ScanTile& at) {
      addVertex(graph_, set, "snnjax::LeakyScan", at.tile(), fieldsOf(at, current), statesOf(at));
    });
  }

  Selectable addNeurons(std::size_t l, const Tensor& current) {
    const LayerPlan& layer = plan_.layers[l];
    const LayerTensors& own = tensors_.layers[l];
    const bool second = layer.neuron.second_state, raises = layer.neuron.raises_threshold;
    Selectable selectable = {addScanRows(graph_, plan_, l, layer.tiles.columns, name("selectable", l)), {}};
    if (second) selectable.raise = addScanRows(graph_, plan_, l, raises ? layer.tiles.columns : 0, name("raise", l));
    const poplar::ComputeSet set = addSet("neurons", l);
    forEachTile(plan_, l, [&](const ScanTile& at) {
      std::vector<Field> fields = fieldsOf(at, current);
      fields.insert(fields.end(), {{"threshold", own.threshold[at.block]},
                                   {"counts", at.ownStates(own.counts)},
                                   {"v", at.ownRows(selectable.v)}});
      std::vector<State> states = statesOf(at);
      states.insert(states.end(), {{"reset", static_cast<unsigned char>(layer.neuron.reset)},
                                   {"keep_history", plan_.keepsMembranes(l)}});
      if (second) {
        fields.insert(fields.end(), {{"second", own.second[at.block]},
                                     {"w", at.ownStates(own.second_states)},
                                     {"raise", at.ownRows(selectable.raise)}});
        states.insert(states.end(), {{"keep_second", plan_.keepsSecond(l)}, {"raises", raises}});
      }
      addVertex(graph_, set, templateVertex("snnjax::LifScan", second), at.tile(), fields, states);
    });
    return selectable;
  }

  // Each home lists its rows by the fair rule: workers list parts of a row, and the parts are joined.
  void addSelection(std::size_t l, const Selectable& from) {
    const ListPlan& list = plan_.lists[l + 1];
    const Tensor dropped = addAtHomes(graph_, poplar::UNSIGNED_INT, list.homes, 1, name("dropped", l)).flatten();
    program_.add(zeros(graph_, {dropped}, name("zero_dropped", l)));
    const poplar::ComputeSet candidates = addSet("candidates", l), lists = addSet("lists", l);
    for (const Home& home : list.homes) addHome(l, home, from, dropped, candidates, lists);
    const Tensor all = dropped.reshape({plan_.options.batch, plan_.options.num_steps});
    popops::reduceWithOutput(graph_, all, tensors_.lists[l + 1].dropped, {1}, popops::Operation::ADD, program_,
                             name("sum_dropped", l));
  }

  // Rows of a home from all blocks: [blocks, rows, columns].
  Tensor ofHome(const Tensor& rows, const Home& home) const {
    const std::size_t each = rows.dim(1) / (std::size_t{plan_.options.batch} * plan_.options.num_steps);
    return rows.slice(home.first_sample * each, (home.first_sample + home.samples) * each, 1);
  }

  void addHome(std::size_t l, const Home& home, const Selectable& from, const Tensor& dropped,
               poplar::ComputeSet candidates, poplar::ComputeSet lists) {
    const LayerPlan& layer = plan_.layers[l];
    const ListPlan& list = plan_.lists[l + 1];
    const bool raises = layer.neuron.raises_threshold;
    const unsigned rows = home.samples, parts = std::max(1U, kWorkers / rows);
    // Parts offer more than a list takes: a search among the few candidates of a row is far cheaper than among neurons.
    const unsigned of_part = (layer.neurons + parts - 1) / parts + 1;
    const unsigned slots = (std::min(std::max(list.capacity, kCandidates), of_part) + 1) / 2 * 2;
    const unsigned stride = listStride(slots);
    const auto add = [&](const poplar::Type& type, unsigned width, const char* part) {
      const Tensor tensor = graph_.addVariable(type, {rows, parts, width}, name(part, l));
      graph_.setTileMapping(tensor, home.tile);
      return tensor;
    };
    const Tensor records = add(UNSIGNED_SHORT, stride, "records"), membranes = add(poplar::FLOAT, slots, "membranes");
    std::vector<Field> fields = {{"v", ofHome(from.v, home)},
                                 {"threshold", tensors_.layers[l].threshold},
                                 {"second_threshold", tensors_.layers[l].second_threshold},
                                 {"lists", records},
                                 {"membranes", membranes}};
    if (raises) fields.push_back({"raise", ofHome(from.raise, home)});
    addVertex(graph_, candidates, templateVertex("snnjax::SelectCandidates", UNSIGNED_SHORT, raises), home.tile, fields,
              {{"rows", rows},
               {"neurons", layer.neurons},
               {"columns", layer.tiles.columns},
               {"parts", parts},
               {"slots", slots},
               {"stride", stride},
               {"capacity", slots},
               {"first_id", 0U},
               {"num_neurons", list.num_neurons}});
    addVertex(graph_, lists, templateVertex("snnjax::CombineCandidates", UNSIGNED_SHORT), home.tile,
              {{"lists", records.dimShuffle({1, 0, 2})},
               {"membranes", membranes.dimShuffle({1, 0, 2})},
               {"list", historyOf(plan_, list.stride, tensors_.lists[l + 1].history, home)},
               {"dropped", rowsOf(dropped, home)},
               {"iteration", no_clock_.at(home.tile)}},
              {{"rows", rows},
               {"num_lists", parts},
               {"slots", slots},
               {"stride_in", stride},
               {"stride", list.stride},
               {"capacity", list.capacity},
               {"num_neurons", list.num_neurons},
               {"num_steps", 1U},
               {"delay", 0U}});
  }

  poplar::Graph& graph_;
  const NetworkPlan& plan_;
  const NetworkTensors& tensors_;
  NoClock no_clock_;
  Sequence program_;
};

}  // namespace

Sequence addScanForward(poplar::Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors) {
  return ScanForward(graph, plan, tensors).program();
}

}  // namespace snnjax::builders
