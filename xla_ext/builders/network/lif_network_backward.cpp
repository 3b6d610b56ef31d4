// The backward pass, over blocks of steps and in each from the last layer to the first: neurons back through time,
// weight gradients of all rows, and what the lists pass on to the layer below.
#include <algorithm>

#include "builders/network/recurrent.hpp"
#include "builders/network/rows.hpp"

namespace snnjax::builders {
namespace {

class Backward {
 public:
  Backward(Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors, const NetworkCotangents& cotangents)
      : graph_(graph), plan_(plan), tensors_(tensors), cotangents_(cotangents), pass_(graph, plan, true) {}

  Sequence program() {
    if (!tensors_.has_copies) pass_.before.add(copyWeights(tensors_));
    pass_.body.add(loadLists(graph_, plan_, tensors_, pass_, plan_.lists.size()));
    if (!plan_.layers.back().isNarrow()) addListsAlone();
    Tensor g_spikes = ofOutput();
    for (std::size_t l = plan_.layers.size(); l-- > 0;) {
      startAtZero(l);
      const Tensor g_current = addNeurons(l, g_spikes);
      const bool reads_first = plan_.options.first_states_gradient || plan_.layers[l].learns_constants;
      if (!plan_.layers[l].leaky && reads_first) addFirstStates(l);
      if (plan_.layers[l].isNarrow()) {
        g_spikes = addReadoutBackward(graph_, plan_, tensors_, cotangents_, g_current, pass_);
        continue;
      }
      addWeights(l, g_current);
      if (l == 0 && !plan_.options.inputs_gradient) break;
      const Tensor values = addListGradient(l, g_current);
      if (l > 0) g_spikes = addDenseRows(l, values);
    }
    return pass_.program(graph_, plan_);
  }

 private:
  std::string name(const char* what, std::size_t l) const {
    return "backward/" + std::string(what) + std::to_string(l);
  }
  ComputeSet addSet(const char* what, std::size_t l) { return pass_.addSet(graph_, what + std::to_string(l)); }

  // The last layer's weights wait for its lists.
  void addListsAlone() {
    const auto gathers = [](const LayerPlan& layer) {
      return layer.gathers_gradient || layer.gathers_recurrent || layer.gradient_on_unit;
    };
    if (std::ranges::none_of(plan_.layers, gathers)) return pass_.of_lists.clear();
    while (pass_.begun < pass_.of_lists.size()) pass_.addSet(graph_, "");
  }

  // Sums over time, and what arrives from behind the last step; vertices that run once start from there by themselves.
  void startAtZero(std::size_t l) {
    if (startsAlone(plan_, l)) return;
    const LayerCotangents& own = cotangents_.layers[l];
    for (const Tensor& each : {own.g_bias, own.g_decay, own.g_threshold, own.g_gain, own.g_w, own.g_second}) {
      if (each.valid()) pass_.zeros.push_back(each);
    }
    if (!plan_.layers[l].leaky) pass_.zeros.push_back(own.g_v);
  }

  // The gradient of the output in a block's steps, as rows.
  Tensor ofOutput() {
    const std::size_t last = plan_.layers.size() - 1;
    const Tensor& all = cotangents_.layers[last].g_output;
    if (plan_.listsOutput()) return addDenseRows(last + 1, ofOutputLists(all));
    if (plan_.num_blocks == 1) return all.reshape({all.dim(0), all.dim(2)});
    const Tensor rows = addRowsOf(graph_, plan_, last, plan_.layers[last].tiles.columns, "backward/g_output");
    const ComputeSet set = addSet("load_output", last);
    forEachTile(plan_, last, [&](const LayerTile& at) {
      const std::size_t each = at.rows() * at.layer().tiles.columns, first = ownFirst(at);
      addLoadBlock(graph_, set, at.tile(), all[at.block].slice(first, first + each, 1), at.ownRows(rows), pass_.block);
    });
    return rows;
  }
  // The same of listed spikes, at their homes.
  Tensor ofOutputLists(const Tensor& history) {
    if (plan_.num_blocks == 1) return history;
    const ListPlan& list = plan_.lists.back();
    const Tensor rows = addAtHomes(graph_, FLOAT, list.homes, list.capacity, "backward/g_output");
    const ComputeSet set = addSet("load_output", plan_.layers.size() - 1);
    for (const Home& home : list.homes) {
      addLoadBlock(graph_, set, home.tile, historyOf(plan_, list.capacity, history, home), rowsOf(rows, home),
                   pass_.block);
    }
    return rows.flatten();
  }
  std::size_t ownFirst(const LayerTile& at) const {
    return std::size_t{at.layer().sample_groups[at.group].first} * plan_.block_steps * at.layer().tiles.columns;
  }

  Tensor addNeurons(std::size_t l, const Tensor& g_spikes) {
    const LayerPlan& layer = plan_.layers[l];
    const Tensor g_current = addRowsOf(graph_, plan_, l, layer.tiles.columns, name("g_current", l));
    if (layer.recurrent) {
      addRecurrentBackward(graph_, plan_, tensors_, cotangents_, l, g_spikes, g_current, pass_);
      return g_current;
    }
    const ComputeSet set = addSet("neurons", l);
    const bool learns = layer.learns_constants;
    forEachTile(plan_, l, [&](const LayerTile& at) {
      std::vector<Field> fields = layer.leaky ? leakyGradientFields(at, tensors_, cotangents_, pass_.block, g_current)
                                              : gradientFields(at, tensors_, cotangents_, pass_.block, g_current);
      fields.push_back({layer.leaky ? "g_output" : "g_spikes", at.ownRows(g_spikes)});
      if (layer.leaky && learns) fields.push_back({"membranes", at.ownStates(tensors_.layers[l].membranes)});
      addVertex(graph_, set,
                layer.leaky ? templateVertex("snnjax::LeakyGradientScan", learns)
                            : templateVertex("snnjax::LifGradientScan", layer.neuron.second_state, learns),
                at.tile(), fields, layer.leaky ? leakyGradientStates(at) : gradientStates(at));
    });
    return g_current;
  }

  // After the first step, from what is left.
  void addFirstStates(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    const LayerTensors& tensors = tensors_.layers[l];
    const LayerCotangents& own = cotangents_.layers[l];
    const bool second = layer.neuron.second_state;
    const ThresholdSums sums = thresholdSums(graph_, plan_, l, own, second);
    const ComputeSet set = graph_.addComputeSet(name("first_states", l));
    pass_.after.add(Execute(set));
    forEachTile(plan_, l, [&](const LayerTile& at) {
      std::vector<State> states = surrogateStates(layer.neuron);
      states.insert(states.end(), {{"batch", at.samples()}, {"neurons", layer.tiles.columns}});
      addVertex(graph_, set, templateVertex("snnjax::LifFirstGradient", second), at.tile(),
                {{"g_v", at.ownStates(own.g_v)},
                 {"g_last", at.ownStates(own.g_last)},
                 {"threshold", at.ofGroup(tensors.threshold)},
                 {"membranes", at.ownStates(membraneRow(plan_, l, tensors, 0))},
                 {"g_first", at.ownStates(own.g_first)},
                 {"g_threshold", at.ownStates(sums.threshold)},
                 {"second", at.ofGroup(tensors.second)},
                 {"w", at.ownStates(secondRow(plan_, l, tensors, 0))},
                 {"g_w", at.ownStates(own.g_w)},
                 {"g_last_w", at.ownStates(own.g_last_w)},
                 {"g_first_w", at.ownStates(own.g_first_w)},
                 {"g_coupling", at.ownStates(sums.coupling)}},
                states);
    });
  }

  void addWeights(std::size_t l, const Tensor& g_current) {
    const ListPlan& list = plan_.lists[l];
    if (plan_.layers[l].gradient_on_unit) {
      pass_.body.add(addUnitGradient(graph_, plan_, tensors_, l, g_current, cotangents_.layers[l].g_weights, pass_));
      return;
    }
    if (plan_.layers[l].gathers_gradient) {
      return addGatheredGradient(graph_, plan_, tensors_, l, false, g_current, cotangents_.layers[l].g_weights, pass_);
    }
    const RowsRead read = {.valued = list.valued,
                           .fields =
                               [&](const LayerTile& at) {
                                 return std::vector<Field>{{"lists", at.fromHomes(tensors_.lists[l].lists)},
                                                           {"values", at.fromHomes(tensors_.lists[l].values)},
                                                           {"g_current", at.ownRows(g_current)}};
                               },
                           .states = [&](const LayerTile& at) { return rowStates(at, list); }};
    WeightsGradient weights(graph_, plan_, l, cotangents_.layers[l].g_weights, "weights");
    pass_.zeros.insert(pass_.zeros.end(), weights.ofGroups().begin(), weights.ofGroups().end());
    pass_.body.add(weights.add(read));
    pass_.after.add(weights.sumGroups());
  }

  // The gradients of the entries of list `l`, spread over all tiles: [batch * block_steps * capacity]; those of slots
  // that list nothing are any numbers. Those of the inputs go where they belong.
  Tensor addListGradient(std::size_t l, const Tensor& g_current) {
    const ListPlan& list = plan_.lists[l];
    const Tensor dots = addRowsOf(graph_, plan_, l, list.capacity, name("dots", l));
    const Tensor all = list.dense ? addRecordOfAll(graph_, list) : Tensor();
    const ComputeSet set = addSet("dots", l);
    forEachTile(plan_, l, [&](const LayerTile& at) {
      std::vector<State> states = rowStates(at, list);
      if (list.dense) states[1] = {"stride", 0U};
      addVertex(graph_, set, templateVertex("snnjax::RowsDots", weightsType(plan_), UNSIGNED_SHORT), at.tile(),
                {{"lists", list.dense ? all : at.fromHomes(tensors_.lists[l].lists)},
                 {"weights", at.weights(tensors_.layers[l])},
                 {"g_current", at.ownRows(g_current)},
                 {"dots", at.ownRows(dots)}},
                states);
    });
    const Tensor values = addSumOfBlocks(l, dots);
    if (l == 0 && plan_.num_blocks == 1) pass_.body.add(Copy(values, cotangents_.g_inputs));
    if (l == 0 && plan_.num_blocks > 1) storeInputsGradient(values);
    return values;
  }

  Tensor addSumOfBlocks(std::size_t l, const Tensor& dots) {
    const auto count = static_cast<unsigned>(dots.dim(1)), each = ceilDivide(ceilDivide(count, plan_.num_tiles), 2) * 2;
    const Tensor sums = graph_.addVariable(FLOAT, {count}, name("list_gradient", l));
    const ComputeSet set = addSet("sum_of_blocks", l);
    unsigned tile = 0;
    for (unsigned first = 0; first < count; first += each, ++tile) {
      const unsigned last = std::min(count, first + each);
      graph_.setTileMapping(sums.slice(first, last), tile);
      addVertex(graph_, set, "snnjax::SumRows", tile,
                {{"in", dots.slice(first, last, 1)}, {"out", sums.slice(first, last)}},
                {{"rows", plan_.layers[l].tiles.count}, {"columns", last - first}});
    }
    return sums;
  }

  void storeInputsGradient(const Tensor& values) {
    const ListPlan& list = plan_.lists.front();
    const ComputeSet set = addSet("store_gradient", 0);
    for (const Home& home : list.homes) {
      addStoreBlock(graph_, set, home.tile, rowsOf(values.reshape({plan_.blockRows(), list.capacity}), home),
                    historyOf(plan_, list.capacity, cotangents_.g_inputs, home), pass_.block);
    }
  }

  // The same for all neurons of the layer that fired: rows for its tiles, 0 for those not listed.
  Tensor addDenseRows(std::size_t l, const Tensor& values) {
    const ListPlan& list = plan_.lists[l];
    const LayerPlan& below = plan_.layers[l - 1];
    const unsigned columns = below.tiles.columns;
    const Tensor rows = addAtHomes(graph_, FLOAT, list.homes, below.paddedNeurons(), name("rows", l));
    const ComputeSet set = addSet("rows", l);
    std::vector<Tensor> blocks;
    for (const Home& home : list.homes) {
      const Tensor own = rowsOf(rows, home);
      const std::size_t first = home.first * list.capacity, count = home.rows * list.capacity;
      addVertex(graph_, set, "snnjax::ScatterList", home.tile,
                {{"list", rowsOf(tensors_.lists[l].lists, home)},
                 {"values", values.slice(first, first + count)},
                 {"row", own}},
                {{"rows", home.rows},
                 {"stride", list.stride},
                 {"capacity", list.capacity},
                 {"columns", columns},
                 {"num_neurons", below.paddedNeurons()}});
      blocks.push_back(own.flatten().reshape({below.tiles.count, home.rows * columns}));
    }
    return poplar::concat(blocks, 1);
  }

  Graph& graph_;
  const NetworkPlan& plan_;
  const NetworkTensors& tensors_;
  const NetworkCotangents& cotangents_;
  Pass pass_;
};

}  // namespace

Sequence addBackward(Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors,
                     const NetworkCotangents& cotangents) {
  return Backward(graph, plan, tensors, cotangents).program();
}

}  // namespace snnjax::builders
