// The forward pass, layer by layer over a block of steps: currents, neurons over time, the lists of all rows.

#include "builders/network/recurrent.hpp"
#include "builders/select_spikes.hpp"

namespace snnjax::builders {
namespace {

class Forward : Pass {
 public:
  using Pass::Pass;

  Sequence run() {
    before.add(copyWeights(tensors));
    body.add(loadLists(*this, 1));
    for (std::size_t l = 0; l < plan.layers.size(); ++l) addLayer({*this, l});
    if (!plan.layers.back().leaky && !dropped_.empty()) {
      sumDropped(addSet("sum_dropped" + std::to_string(plan.layers.size() - 1)));
    }
    if (plan.num_blocks > 1) storeLists();
    return program();
  }

 private:
  void addLayer(const LayerPass& of) {
    const Tensor current = addCurrents(of);
    if (of.layer.leaky) return addReadout(of, current);
    if (plan.options.counts) zeros.push_back(of.tensors.counts);
    const Offered offered = addNeurons(of, current);
    if (plan.firesLists(of.l)) selectSpikes(of, offered);
    if (of.layer.recurrent) after.add(addLastSpikes(of));
  }

  void storeLists() {
    const ComputeSet set = graph.addComputeSet("forward/store_lists");
    for (std::size_t l = 1; l < plan.lists.size(); ++l) {
      const ListPlan& list = plan.lists[l];
      const ListTensors& own = tensors.lists[l];
      for (const Home& home : list.homes) {
        addStoreBlock(*this, set, home.tile, rowsOf(own.lists, home), historyOf(plan, list.stride, own.history, home));
      }
    }
    body.add(Execute(set));
  }

  Tensor addCurrents(const LayerPass& of) {
    const unsigned columns = of.layer.tiles.columns;
    if (of.layer.currents_on_unit) {
      const Tensor current = of.addRows(columns, of.name("current"));
      body.add(addUnitCurrents(of, current));
      return current;
    }
    const ListPlan& list = plan.lists[of.l];
    const ListTensors& lists = tensors.lists[of.l];
    const Tensor current =
        graph.addVariable(FLOAT, {of.layer.tiles.count, std::size_t{plan.blockRows()} * columns}, of.name("current"));
    const std::string type = templateVertex("snnjax::RowsCurrent", weightsType(plan), list.valued);
    const ComputeSet set = of.addSet("currents");
    forEachTile(of, [&](const LayerTile& at) {
      for (const RowPart& part : rowPartsOf(at)) {
        const Tensor sums = part.of(at.ownRows(current), at.rows());
        graph.setTileMapping(sums, part.tile);
        addVertex(graph, set, type, part.tile,
                  {{"lists", part.of(at.fromHomes(lists.lists), at.rows())},
                   {"values", part.of(at.fromHomes(lists.values), at.rows())},
                   {"weights", at.weights()},
                   {"current", sums}},
                  currentStates(at, list, part.count));
      }
    });
    return current;
  }

  void addReadout(const LayerPass& of, const Tensor& current) {
    const ComputeSet set = of.addSet("readout");
    forEachTile(of, [&](const LayerTile& at) {
      addVertex(graph, set, "snnjax::LeakyScan", at.tile(), neuronFields(at, current), neuronStates(at));
    });
    sumDropped(set);
  }

  Offered addNeurons(const LayerPass& of, const Tensor& current) {
    const unsigned columns = of.layer.tiles.columns;
    Offered offered = {of.addRows(offeredStride(columns), of.name("offered")),
                       of.addRows(columns / 2, of.name("marks")).reinterpret(UNSIGNED_INT)};
    if (of.layer.recurrent) {
      if (addRecurrentForward(of, current, offered)) offered.marks = {};
      return offered;
    }
    const ComputeSet set = of.addSet("neurons");
    const std::string type = templateVertex("snnjax::LifScan", of.layer.neuron.second_state, plan.options.counts);
    forEachTile(of, [&](const LayerTile& at) {
      addVertex(graph, set, type, at.tile(), neuronFields(at, current, offered), neuronStates(at));
    });
    return offered;
  }

  void packMarks(const LayerPass& of, const Offered& from) {
    const unsigned columns = of.layer.tiles.columns;
    const ComputeSet set = of.addSet("marks");
    forEachTile(of, [&](const LayerTile& at) {
      addVertex(graph, set, "snnjax::PackMarks", at.tile(),
                {{"marks", at.ownRows(from.marks)}, {"offered", at.ownRows(from.rows)}},
                {{"rows", at.rows()}, {"neurons", columns}, {"stride", offeredStride(columns)}});
    });
  }

  // Each home lists its rows.
  void selectSpikes(const LayerPass& of, const Offered& from) {
    const ListPlan& list = plan.lists[of.l + 1];
    const unsigned neurons = of.layer.neurons, columns = of.layer.tiles.columns, stride = offeredStride(columns),
                   share = neuronsOfShare(neurons);
    const Tensor dropped = addAtHomes(graph, UNSIGNED_INT, list.homes, 1, of.name("dropped")).flatten();
    if (plan.num_blocks > 1) zeros.push_back(dropped);
    if (from.marks.valid()) packMarks(of, from);
    SelectionSets sets(graph, name, std::to_string(of.l), plan.num_blocks > 1);
    for (const Home& home : list.homes) {
      sets.add({home.tile, home.rows, neurons, list.capacity, rowsOf(tensors.lists[of.l + 1].lists, home),
                rowsOf(dropped, home)},
               "snnjax::SelectMarked", {{"offered", ofHome(from.rows, home)}},
               {{"blocks", of.layer.tiles.count},
                {"columns", columns},
                {"stride", stride},
                {"share_blocks", share / columns},
                {"share_columns", share % columns}});
    }
    body.add(sets.program());
    dropped_.push_back(dropped.reshape({plan.options.batch, plan.block_steps}));
  }

  // What all layers dropped so far, beside other work.
  void sumDropped(ComputeSet set) {
    for (std::size_t l = 0; l < dropped_.size(); ++l) {
      const Tensor& sums = tensors.lists[l + 1].dropped;
      const std::vector<Home>& homes = plan.lists[l + 1].homes;
      for (unsigned b = 0; b < plan.options.batch; ++b) {
        addVertex(graph, set, "snnjax::SumDropped", homes[b * homes.size() / plan.options.batch].tile,
                  {{"dropped", dropped_[l][b]}, {"sum", sums[b]}}, {{"count", plan.block_steps}});
      }
    }
  }

  // Rows of a home from all blocks: [blocks, rows, columns].
  Tensor ofHome(const Tensor& rows, const Home& home) const {
    const std::size_t each = rows.dim(1) / plan.blockRows();
    return rows.slice(home.first * each, (home.first + home.rows) * each, 1);
  }

  std::vector<Tensor> dropped_;  // of each layer that fires lists, [batch, block_steps]
};

}  // namespace

Sequence addForward(Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors) {
  return Forward(graph, plan, tensors).run();
}

}  // namespace snnjax::builders
