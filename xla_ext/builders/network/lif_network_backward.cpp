// The backward pass, over blocks of steps and in each from the last layer to the first: neurons back through time,
// weight gradients of all rows, and what the lists pass on to the layer below.

#include "builders/network/recurrent.hpp"

namespace snnjax::builders {
namespace {

class Backward : Pass {
 public:
  using Pass::Pass;

  Sequence run() {
    if (!tensors.has_copies) before.add(copyWeights(tensors));
    body.add(loadLists(*this, plan.lists.size()));
    if (!plan.layers.back().isNarrow()) addListsAlone();
    Tensor g_spikes = ofOutput({*this, plan.layers.size() - 1});
    for (std::size_t l = plan.layers.size(); l-- > 0;) {
      const LayerPass of = {*this, l};
      startAtZero(of);
      const Tensor g_current = addNeurons(of, g_spikes);
      const bool reads_first = plan.options.first_states_gradient || of.layer.learns_constants;
      if (!of.layer.leaky && reads_first) addFirstStates(of);
      if (of.layer.isNarrow()) {
        g_spikes = addReadoutBackward(*this, g_current);
        continue;
      }
      addWeights(of, g_current);
      if (l == 0 && !plan.options.inputs_gradient) break;
      const Tensor values = addListGradient(of, g_current);
      if (l > 0) g_spikes = addDenseRows(l, values);
    }
    return program();
  }

 private:
  // The last layer's weights wait for its lists.
  void addListsAlone() {
    const auto gathers = [](const LayerPlan& layer) {
      return layer.gathers_gradient || layer.gathers_recurrent || layer.gradient_on_unit;
    };
    if (std::ranges::none_of(plan.layers, gathers)) return of_lists.clear();
    while (begun < of_lists.size()) addSet("");
  }

  // Sums over time, and what arrives from behind the last step; vertices that run once start from there by themselves.
  void startAtZero(const LayerPass& of) {
    if (startsAlone(of)) return;
    const LayerCotangents& own = of.cotangents();
    for (const Tensor& each : {own.g_bias, own.g_decay, own.g_threshold, own.g_gain, own.g_w, own.g_second}) {
      if (each.valid()) zeros.push_back(each);
    }
    if (!of.layer.leaky) zeros.push_back(own.g_v);
  }

  // The gradient of the output in a block's steps, as rows.
  Tensor ofOutput(const LayerPass& last) {
    const Tensor& all = last.cotangents().g_output;
    if (plan.listsOutput()) return addDenseRows(last.l + 1, ofOutputLists(last, all));
    if (plan.num_blocks == 1) return all.reshape({all.dim(0), all.dim(2)});
    const Tensor rows = last.addRows(last.layer.tiles.columns, "backward/g_output");
    const ComputeSet set = last.addSet("load_output");
    forEachTile(last, [&](const LayerTile& at) {
      const std::size_t each = at.rows() * at.layer().tiles.columns, first = ownFirst(at);
      addLoadBlock(*this, set, at.tile(), all[at.block].slice(first, first + each, 1), at.ownRows(rows));
    });
    return rows;
  }
  // The same of listed spikes, at their homes.
  Tensor ofOutputLists(const LayerPass& last, const Tensor& history) {
    if (plan.num_blocks == 1) return history;
    const ListPlan& list = plan.lists.back();
    const Tensor rows = addAtHomes(graph, FLOAT, list.homes, list.capacity, "backward/g_output");
    const ComputeSet set = last.addSet("load_output");
    for (const Home& home : list.homes) {
      addLoadBlock(*this, set, home.tile, historyOf(plan, list.capacity, history, home), rowsOf(rows, home));
    }
    return rows.flatten();
  }
  std::size_t ownFirst(const LayerTile& at) const {
    return std::size_t{at.layer().sample_groups[at.group].first} * plan.block_steps * at.layer().tiles.columns;
  }

  Tensor addNeurons(const LayerPass& of, const Tensor& g_spikes) {
    const LayerPlan& layer = of.layer;
    const Tensor g_current = of.addRows(layer.tiles.columns, of.name("g_current"));
    if (layer.recurrent) {
      addRecurrentBackward(of, g_spikes, g_current);
      return g_current;
    }
    const ComputeSet set = of.addSet("neurons");
    const bool learns = layer.learns_constants;
    const std::string type = layer.leaky ? templateVertex("snnjax::LeakyGradientScan", learns)
                                         : templateVertex("snnjax::LifGradientScan", layer.neuron.second_state, learns);
    forEachTile(of, [&](const LayerTile& at) {
      addVertex(graph, set, type, at.tile(),
                with(gradientFields(at, g_current), {{layer.leaky ? "g_output" : "g_spikes", at.ownRows(g_spikes)}}),
                gradientStates(at));
    });
    return g_current;
  }

  // After the first step, from what is left.
  void addFirstStates(const LayerPass& of) {
    const LayerCotangents& own = of.cotangents();
    const bool second = of.layer.neuron.second_state;
    const ThresholdSums sums = thresholdSums(of, second);
    const ComputeSet set = graph.addComputeSet(of.name("first_states"));
    after.add(Execute(set));
    forEachTile(of, [&](const LayerTile& at) {
      addVertex(graph, set, templateVertex("snnjax::LifFirstGradient", second), at.tile(),
                {{"g_v", at.ownStates(own.g_v)},
                 {"g_last", at.ownStates(own.g_last)},
                 {"threshold", at.ofGroup(of.tensors.threshold)},
                 {"membranes", at.ownStates(rowOf(plan, of.l, of.tensors.membranes, 0))},
                 {"g_first", at.ownStates(own.g_first)},
                 {"g_threshold", at.ownStates(sums.threshold)},
                 {"second", at.ofGroup(of.tensors.second)},
                 {"w", at.ownStates(rowOf(plan, of.l, of.tensors.second_states, 0))},
                 {"g_w", at.ownStates(own.g_w)},
                 {"g_last_w", at.ownStates(own.g_last_w)},
                 {"g_first_w", at.ownStates(own.g_first_w)},
                 {"g_coupling", at.ownStates(sums.coupling)}},
                with(surrogateStates(of.layer.neuron), {{"batch", at.samples()}, {"neurons", of.layer.tiles.columns}}));
    });
  }

  void addWeights(const LayerPass& of, const Tensor& g_current) {
    const Tensor& to = of.cotangents().g_weights;
    if (of.layer.gradient_on_unit) {
      body.add(addUnitGradient(of, g_current));
      return;
    }
    if (of.layer.gathers_gradient) return addGatheredGradient(of, false, g_current, to);
    const ListPlan& list = plan.lists[of.l];
    const ListTensors& lists = tensors.lists[of.l];
    const auto fields = [&](const LayerTile& at) -> std::vector<Field> {
      return {{"lists", at.fromHomes(lists.lists)},
              {"values", at.fromHomes(lists.values)},
              {"g_current", at.ownRows(g_current)}};
    };
    const WeightsGradient weights(of, to, "weights");
    body.add(weights.add(list.valued, fields, [&](const LayerTile& at) { return rowStates(at, list); }));
    after.add(weights.sumGroups());
  }

  // The gradients of the entries of list `l`, spread over all tiles: [batch * block_steps * capacity]; those of slots
  // that list nothing are any numbers. Those of the inputs go where they belong.
  Tensor addListGradient(const LayerPass& of, const Tensor& g_current) {
    const ListPlan& list = plan.lists[of.l];
    const Tensor dots = of.addRows(list.capacity, of.name("dots"));
    const Tensor all = list.dense ? addRecordOfAll(graph, list) : Tensor();
    const ComputeSet set = of.addSet("dots");
    forEachTile(of, [&](const LayerTile& at) {
      std::vector<State> states = rowStates(at, list);
      if (list.dense) states[1] = {"stride", 0U};
      addVertex(graph, set, templateVertex("snnjax::RowsDots", weightsType(plan)), at.tile(),
                {{"lists", list.dense ? all : at.fromHomes(tensors.lists[of.l].lists)},
                 {"weights", at.weights()},
                 {"g_current", at.ownRows(g_current)},
                 {"dots", at.ownRows(dots)}},
                states);
    });
    const Tensor values = addSumOfBlocks(of, dots);
    if (of.l == 0 && plan.num_blocks == 1) body.add(Copy(values, cotangents->g_inputs));
    if (of.l == 0 && plan.num_blocks > 1) storeInputsGradient(values);
    return values;
  }

  Tensor addSumOfBlocks(const LayerPass& of, const Tensor& dots) {
    const auto count = static_cast<unsigned>(dots.dim(1)), each = ceilDivide(ceilDivide(count, plan.num_tiles), 2) * 2;
    const Tensor sums = graph.addVariable(FLOAT, {count}, of.name("list_gradient"));
    const ComputeSet set = of.addSet("sum_of_blocks");
    unsigned tile = 0;
    for (unsigned first = 0; first < count; first += each, ++tile) {
      const unsigned last = std::min(count, first + each);
      graph.setTileMapping(sums.slice(first, last), tile);
      addVertex(graph, set, "snnjax::SumRows", tile,
                {{"in", dots.slice(first, last, 1)}, {"out", sums.slice(first, last)}},
                {{"rows", of.layer.tiles.count}, {"columns", last - first}});
    }
    return sums;
  }

  void storeInputsGradient(const Tensor& values) {
    const ListPlan& list = plan.lists.front();
    const ComputeSet set = addSet("store_gradient0");
    for (const Home& home : list.homes) {
      addStoreBlock(*this, set, home.tile, rowsOf(values.reshape({plan.blockRows(), list.capacity}), home),
                    historyOf(plan, list.capacity, cotangents->g_inputs, home));
    }
  }

  // The same for all neurons of the layer that fired: rows for its tiles, 0 for those not listed.
  Tensor addDenseRows(std::size_t l, const Tensor& values) {
    const ListPlan& list = plan.lists[l];
    const LayerPlan& below = plan.layers[l - 1];
    const unsigned columns = below.tiles.columns;
    const Tensor rows =
        addAtHomes(graph, FLOAT, list.homes, below.paddedNeurons(), "backward/rows" + std::to_string(l));
    const ComputeSet set = addSet("rows" + std::to_string(l));
    std::vector<Tensor> blocks;
    for (const Home& home : list.homes) {
      const Tensor own = rowsOf(rows, home);
      const std::size_t first = home.first * list.capacity, count = home.rows * list.capacity;
      addVertex(graph, set, "snnjax::ScatterList", home.tile,
                {{"list", rowsOf(tensors.lists[l].lists, home)},
                 {"values", values.slice(first, first + count)},
                 {"row", own}},
                with(recordStates(home.rows, list), {{"columns", columns}, {"num_neurons", below.paddedNeurons()}}));
      blocks.push_back(own.flatten().reshape({below.tiles.count, home.rows * columns}));
    }
    return poplar::concat(blocks, 1);
  }
};

}  // namespace

Sequence addBackward(Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors,
                     const NetworkCotangents& cotangents) {
  return Backward(graph, plan, tensors, &cotangents).run();
}

}  // namespace snnjax::builders
