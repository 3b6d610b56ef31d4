// The loop of a pass over its blocks of steps, and what goes in and out of histories of all blocks.

#include "builders/network/rows.hpp"

namespace snnjax::builders {
namespace {

void addListInputs(const Pass& pass, ComputeSet set, const Home& home) {
  const ListPlan& list = pass.plan.lists.front();
  const ListTensors& tensors = pass.tensors.lists.front();
  addVertex(pass.graph, set, "snnjax::ListInputs", home.tile,
            {{"history", historyOf(pass.plan, list.capacity, tensors.values_history, home)},
             {"lists", rowsOf(tensors.lists, home)},
             {"values", rowsOf(tensors.values, home)},
             {"block", pass.block.at(home.tile)}},
            {{"num_blocks", pass.plan.num_blocks},
             {"rows", home.rows},
             {"stride", list.stride},
             {"num_inputs", list.num_neurons}});
}

}  // namespace

Counter::Counter(Graph& graph, unsigned num_tiles, unsigned start, const std::string& name, unsigned each)
    : counters_(graph.addVariable(UNSIGNED_INT, {num_tiles, each}, name)),
      start_(graph.addConstant(UNSIGNED_INT, {num_tiles, each}, start, name + "/start")) {
  for (unsigned tile = 0; tile < num_tiles; ++tile) {
    graph.setTileMapping(counters_[tile], tile);
    graph.setTileMapping(start_[tile], tile);
  }
  graph.setInitialValue(counters_, start);
}

void Counter::advance(Graph& graph, ComputeSet set, unsigned first, unsigned count, unsigned by) const {
  for (unsigned tile = first; tile < first + count; ++tile) {
    addVertex(graph, set, "snnjax::Advance", tile, {{"counter", at(tile)}}, {{"by", by}});
  }
}

Program Counter::reset() const { return Copy(start_, counters_); }

Pass::Pass(Graph& to, const NetworkPlan& network, const NetworkTensors& variables, const NetworkCotangents* gradients)
    : graph(to),
      plan(network),
      tensors(variables),
      cotangents(gradients),
      name(cotangents ? "backward" : "forward"),
      block(graph, plan.num_tiles, cotangents ? plan.num_blocks - 1 : 0, name + "/block") {
  if (!cotangents) return;
  for (const char* const set : {"/first", "/second", "/third"}) of_lists.push_back(graph.addComputeSet(name + set));
}

ComputeSet Pass::addSet(const std::string& set) {
  const ComputeSet next = begun < of_lists.size() ? of_lists[begun++] : graph.addComputeSet(name + "/" + set);
  body.add(Execute(next));
  return next;
}

Sequence Pass::program() const {
  Sequence all({builders::zeros(graph, zeros, name + "/zeros"), before});
  if (plan.num_blocks == 1) {
    all.add(body);
  } else {
    const ComputeSet next = graph.addComputeSet(name + "/next_block");
    block.advance(graph, next, 0, plan.num_tiles, cotangents ? ~0U : 1U);
    all.add(Repeat(plan.num_blocks, Sequence({body, Execute(next)})));
    all.add(block.reset());
  }
  if (of_readout) all.add(Execute(*of_readout));
  all.add(after);
  return all;
}

void addStoreBlock(const Pass& pass, ComputeSet set, unsigned tile, const Tensor& row, const Tensor& history) {
  const Type bits = row.elementType() == FLOAT ? UNSIGNED_INT : row.elementType();
  addVertex(pass.graph, set, templateVertex("snnjax::UpdateWindow", bits), tile,
            {{"table", history.reinterpret(bits)}, {"start", pass.block.at(tile)}, {"values", row.reinterpret(bits)}},
            {{"rows", static_cast<unsigned>(history.dim(0))},
             {"width", static_cast<unsigned>(row.numElements())},
             {"count", 1U},
             {"is_signed", false}});
}

void addLoadBlock(const Pass& pass, ComputeSet set, unsigned tile, const Tensor& history, const Tensor& row,
                  unsigned back) {
  addVertex(pass.graph, set, templateVertex("snnjax::LoadBlock", row.elementType()), tile,
            {{"history", history}, {"row", row}, {"block", pass.block.at(tile)}},
            {{"num_blocks", static_cast<unsigned>(history.dim(0))},
             {"back", back},
             {"width", static_cast<unsigned>(row.numElements())}});
}

Sequence loadLists(const Pass& pass, std::size_t count) {
  const NetworkPlan& plan = pass.plan;
  if (plan.num_blocks == 1 && !plan.lists.front().dense) return Sequence();
  const ComputeSet set = pass.graph.addComputeSet(pass.name + "/load_lists");
  for (std::size_t l = 0; l < count; ++l) {
    const ListPlan& list = plan.lists[l];
    const ListTensors& own = pass.tensors.lists[l];
    const auto load = [&](const Home& home, std::size_t width, const Tensor& history, const Tensor& rows) {
      addLoadBlock(pass, set, home.tile, historyOf(plan, width, history, home), rowsOf(rows, home));
    };
    for (const Home& home : list.homes) {
      if (list.dense) {
        addListInputs(pass, set, home);
      } else if (plan.num_blocks > 1) {
        load(home, list.stride, own.history, own.lists);
        if (list.valued) load(home, list.capacity, own.values_history, own.values);
      }
    }
  }
  return Sequence({Execute(set)});
}

}  // namespace snnjax::builders
