// The loop of a pass over its blocks of steps, and what goes in and out of histories of all blocks.

#include "builders/network/rows.hpp"

namespace snnjax::builders {

namespace {

void addListInputs(Graph& graph, ComputeSet set, const NetworkPlan& plan, const ListTensors& tensors, const Home& home,
                   const Counter& block) {
  const ListPlan& list = plan.lists.front();
  addVertex(graph, set, "snnjax::ListInputs", home.tile,
            {{"history", historyOf(plan, list.capacity, tensors.values_history, home)},
             {"lists", rowsOf(tensors.lists, home)},
             {"values", rowsOf(tensors.values, home)},
             {"block", block.at(home.tile)}},
            {{"num_blocks", plan.num_blocks},
             {"rows", home.rows},
             {"stride", list.stride},
             {"num_inputs", list.num_neurons}});
}

}  // namespace

Pass::Pass(Graph& graph, const NetworkPlan& plan, bool backward)
    : name(backward ? "backward" : "forward"),
      is_backward(backward),
      block(graph, plan.num_tiles, backward ? plan.num_blocks - 1 : 0, name + "/block") {
  if (!backward) return;
  for (const char* const set : {"/first", "/second", "/third"}) of_lists.push_back(graph.addComputeSet(name + set));
}

ComputeSet Pass::addSet(Graph& graph, const std::string& set) {
  const ComputeSet next = begun < of_lists.size() ? of_lists[begun++] : graph.addComputeSet(name + "/" + set);
  body.add(Execute(next));
  return next;
}

Sequence Pass::program(Graph& graph, const NetworkPlan& plan) const {
  Sequence all({builders::zeros(graph, zeros, name + "/zeros"), before});
  if (plan.num_blocks == 1) {
    all.add(body);
  } else {
    const ComputeSet next = graph.addComputeSet(name + "/next_block");
    block.advance(graph, next, 0, plan.num_tiles, is_backward ? ~0U : 1U);
    all.add(Repeat(plan.num_blocks, Sequence({body, Execute(next)})));
    all.add(block.reset());
  }
  if (of_readout) all.add(Execute(*of_readout));
  all.add(after);
  return all;
}

void addStoreBlock(Graph& graph, ComputeSet set, unsigned tile, const Tensor& row, const Tensor& history,
                   const Counter& block) {
  addVertex(
      graph, set, templateVertex("snnjax::StoreBlock", row.elementType()), tile,
      {{"row", row}, {"history", history}, {"block", block.at(tile)}},
      {{"num_blocks", static_cast<unsigned>(history.dim(0))}, {"width", static_cast<unsigned>(row.numElements())}});
}

void addLoadBlock(Graph& graph, ComputeSet set, unsigned tile, const Tensor& history, const Tensor& row,
                  const Counter& block, unsigned back) {
  addVertex(graph, set, templateVertex("snnjax::LoadBlock", row.elementType()), tile,
            {{"history", history}, {"row", row}, {"block", block.at(tile)}},
            {{"num_blocks", static_cast<unsigned>(history.dim(0))},
             {"back", back},
             {"width", static_cast<unsigned>(row.numElements())}});
}

Sequence loadLists(Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors, const Pass& pass,
                   std::size_t count) {
  if (plan.num_blocks == 1 && !plan.lists.front().dense) return Sequence();
  const ComputeSet set = graph.addComputeSet(pass.name + "/load_lists");
  for (std::size_t l = 0; l < count; ++l) {
    const ListPlan& list = plan.lists[l];
    const ListTensors& own = tensors.lists[l];
    const auto load = [&](const Home& home, std::size_t width, const Tensor& history, const Tensor& rows) {
      addLoadBlock(graph, set, home.tile, historyOf(plan, width, history, home), rowsOf(rows, home), pass.block);
    };
    for (const Home& home : list.homes) {
      if (list.dense) {
        addListInputs(graph, set, plan, own, home, pass.block);
      } else if (plan.num_blocks > 1) {
        load(home, list.stride, own.history, own.lists);
        if (list.valued) load(home, list.capacity, own.values_history, own.values);
      }
    }
  }
  return Sequence({Execute(set)});
}

}  // namespace snnjax::builders
