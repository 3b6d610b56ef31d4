// The forward pass, layer by layer over a block of steps: currents, neurons over time, the lists of all rows.

#include "builders/network/recurrent.hpp"
#include "builders/network/rows.hpp"
#include "builders/select_spikes.hpp"

namespace snnjax::builders {
namespace {

class Forward {
 public:
  Forward(Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors)
      : graph_(graph), plan_(plan), tensors_(tensors), pass_(graph, plan, false) {}

  Sequence program() {
    pass_.before.add(copyWeights(tensors_));
    pass_.body.add(loadLists(graph_, plan_, tensors_, pass_, 1));
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) addLayer(l);
    if (!plan_.layers.back().leaky && !dropped_.empty()) sumDropped(addSet("sum_dropped", plan_.layers.size() - 1));
    if (plan_.num_blocks > 1) storeLists();
    return pass_.program(graph_, plan_);
  }

 private:
  std::string name(const char* what, std::size_t l) const { return "forward/" + std::string(what) + std::to_string(l); }
  ComputeSet addSet(const char* what, std::size_t l) { return pass_.addSet(graph_, what + std::to_string(l)); }

  void addLayer(std::size_t l) {
    const Tensor current = addCurrents(l);
    if (plan_.layers[l].leaky) return addReadout(l, current);
    if (plan_.keepsCounts(l)) pass_.zeros.push_back(tensors_.layers[l].counts);
    const Offered offered = addNeurons(l, current);
    if (plan_.firesLists(l)) selectSpikes(l, offered);
    if (plan_.layers[l].recurrent) pass_.after.add(addLastSpikes(graph_, plan_, tensors_, l));
  }

  void storeLists() {
    const ComputeSet set = graph_.addComputeSet("forward/store_lists");
    for (std::size_t l = 1; l < plan_.lists.size(); ++l) {
      const ListPlan& list = plan_.lists[l];
      const ListTensors& own = tensors_.lists[l];
      for (const Home& home : list.homes) {
        addStoreBlock(graph_, set, home.tile, rowsOf(own.lists, home), historyOf(plan_, list.stride, own.history, home),
                      pass_.block);
      }
    }
    pass_.body.add(Execute(set));
  }

  Tensor addCurrents(std::size_t l) {
    const unsigned columns = plan_.layers[l].tiles.columns;
    if (plan_.layers[l].currents_on_unit) {
      const Tensor current = addRowsOf(graph_, plan_, l, columns, name("current", l));
      pass_.body.add(addUnitCurrents(graph_, plan_, tensors_, l, current));
      return current;
    }
    const Tensor current = graph_.addVariable(
        FLOAT, {plan_.layers[l].tiles.count, std::size_t{plan_.blockRows()} * columns}, name("current", l));
    const std::string type =
        templateVertex("snnjax::RowsCurrent", weightsType(plan_), UNSIGNED_SHORT, plan_.lists[l].valued);
    const ComputeSet set = addSet("currents", l);
    forEachTile(plan_, l, [&](const LayerTile& at) {
      for (const RowPart& part : rowPartsOf(at)) {
        const Tensor sums = part.of(at.ownRows(current), at.rows());
        graph_.setTileMapping(sums, part.tile);
        addVertex(graph_, set, type, part.tile,
                  {{"lists", part.of(at.fromHomes(tensors_.lists[l].lists), at.rows())},
                   {"values", part.of(at.fromHomes(tensors_.lists[l].values), at.rows())},
                   {"weights", at.weights(tensors_.layers[l])},
                   {"current", sums}},
                  currentStates(at, plan_.lists[l], part.count));
      }
    });
    return current;
  }

  void addReadout(std::size_t l, const Tensor& current) {
    const ComputeSet set = addSet("readout", l);
    forEachTile(plan_, l, [&](const LayerTile& at) {
      addVertex(graph_, set, "snnjax::LeakyScan", at.tile(), leakyFields(at, tensors_, pass_.block, current),
                leakyStates(at));
    });
    sumDropped(set);
  }

  Offered addNeurons(std::size_t l, const Tensor& current) {
    const LayerPlan& layer = plan_.layers[l];
    const unsigned columns = layer.tiles.columns;
    const Offered offered = {addRowsOf(graph_, plan_, l, offeredStride(columns), name("offered", l)),
                             addRowsOf(graph_, plan_, l, columns / 2, name("marks", l)).reinterpret(UNSIGNED_INT)};
    if (layer.recurrent) {
      addRecurrentForward(graph_, plan_, tensors_, l, current, offered, pass_);
      return offered;
    }
    const ComputeSet set = addSet("neurons", l);
    forEachTile(plan_, l, [&](const LayerTile& at) {
      addVertex(graph_, set, templateVertex("snnjax::LifScan", layer.neuron.second_state, plan_.keepsCounts(l)),
                at.tile(), neuronFields(at, tensors_, pass_.block, current, offered), neuronStates(at));
    });
    return offered;
  }

  // Each home lists its rows.
  void selectSpikes(std::size_t l, const Offered& from) {
    const ListPlan& list = plan_.lists[l + 1];
    const unsigned neurons = plan_.layers[l].neurons, columns = plan_.layers[l].tiles.columns,
                   stride = offeredStride(columns), share = neuronsOfShare(neurons);
    const Tensor dropped = addAtHomes(graph_, UNSIGNED_INT, list.homes, 1, name("dropped", l)).flatten();
    if (plan_.num_blocks > 1) pass_.zeros.push_back(dropped);
    const ComputeSet marks = addSet("marks", l);
    forEachTile(plan_, l, [&](const LayerTile& at) {
      addVertex(graph_, marks, "snnjax::PackMarks", at.tile(),
                {{"marks", at.ownRows(from.marks)}, {"offered", at.ownRows(from.rows)}},
                {{"rows", at.rows()}, {"neurons", columns}, {"stride", stride}});
    });
    SelectionSets sets(graph_, "forward", std::to_string(l), plan_.num_blocks > 1);
    for (const Home& home : list.homes) {
      sets.add({home.tile, home.rows, neurons, list.capacity, rowsOf(tensors_.lists[l + 1].lists, home),
                rowsOf(dropped, home)},
               "snnjax::SelectMarked", {{"offered", ofHome(from.rows, home)}},
               {{"blocks", plan_.layers[l].tiles.count},
                {"columns", columns},
                {"stride", stride},
                {"share_blocks", share / columns},
                {"share_columns", share % columns}});
    }
    pass_.body.add(sets.program());
    dropped_.push_back(dropped.reshape({plan_.options.batch, plan_.block_steps}));
  }

  // What all layers dropped so far, beside other work.
  void sumDropped(ComputeSet set) {
    for (std::size_t l = 0; l < dropped_.size(); ++l) {
      const Tensor& sums = tensors_.lists[l + 1].dropped;
      const std::vector<Home>& homes = plan_.lists[l + 1].homes;
      for (unsigned b = 0; b < plan_.options.batch; ++b) {
        addVertex(graph_, set, "snnjax::SumDropped", homes[b * homes.size() / plan_.options.batch].tile,
                  {{"dropped", dropped_[l][b]}, {"sum", sums[b]}}, {{"count", plan_.block_steps}});
      }
    }
  }

  // Rows of a home from all blocks: [blocks, rows, columns].
  Tensor ofHome(const Tensor& rows, const Home& home) const {
    const std::size_t each = rows.dim(1) / plan_.blockRows();
    return rows.slice(home.first * each, (home.first + home.rows) * each, 1);
  }

  Graph& graph_;
  const NetworkPlan& plan_;
  const NetworkTensors& tensors_;
  Pass pass_;
  std::vector<Tensor> dropped_;  // of each layer that fires lists, [batch, block_steps]
};

}  // namespace

Sequence addForward(Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors) {
  return Forward(graph, plan, tensors).program();
}

}  // namespace snnjax::builders
