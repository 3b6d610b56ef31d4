#include "loop.hpp"

#include <array>
#include <popops/Fill.hpp>
#include <popops/Zero.hpp>
#include <poputil/VertexTemplates.hpp>

#include "vertices.hpp"

namespace snnjax::builders {
namespace {

void addListInputs(Loop& loop, std::size_t l, const Home& home, When when) {
  const ListPlan& list = loop.plan.lists[l];
  const ListTensors& tensors = loop.tensors.lists[l];
  addVertex(loop.graph, loop.sets[when.set], poputil::templateVertex("snnjax::ListInputs", poplar::UNSIGNED_SHORT),
            home.tile,
            {{"history", historyOf(loop.plan, list.capacity, tensors.values_history, home)},
             {"lists", rowsOf(tensors.lists, home)},
             {"values", rowsOf(tensors.values, home)},
             {"iteration", loop.clock.at(home.tile, when.set)}},
            {{"num_steps", loop.plan.options.num_steps},
             {"delay", when.delay},
             {"rows", home.samples},
             {"stride", list.stride},
             {"num_inputs", list.num_neurons},
             {"reverse", when.reverse}});
}

}  // namespace

poplar::program::Program fill(poplar::Graph& graph, const std::vector<poplar::Tensor>& tensors, float value,
                              const std::string& name) {
  if (tensors.empty()) return poplar::program::Sequence();
  const poplar::ComputeSet set = graph.addComputeSet(name);
  for (const poplar::Tensor& each : tensors) popops::fill(graph, each, graph.getTileMapping(each), set, value);
  return poplar::program::Execute(set);
}

poplar::program::Program zeros(poplar::Graph& graph, const std::vector<poplar::Tensor>& tensors,
                               const std::string& name) {
  if (tensors.empty()) return poplar::program::Sequence();
  const poplar::ComputeSet set = graph.addComputeSet(name);
  for (const poplar::Tensor& each : tensors) popops::zero(graph, each, graph.getTileMapping(each), set);
  return poplar::program::Execute(set);
}

LoopSets Loop::addSets(poplar::Graph& graph, const std::string& name, unsigned count) {
  constexpr std::array<const char*, 6> kNames = {"/first", "/second", "/third", "/fourth", "/fifth", "/sixth"};
  LoopSets sets;
  for (unsigned set = 0; set < count; ++set) sets.push_back(graph.addComputeSet(name + kNames.at(set)));
  return sets;
}

void addStep(Loop& loop, const char* codelet, unsigned tile, const poplar::Tensor& history, const poplar::Tensor& row,
             When when) {
  addVertex(loop.graph, loop.sets[when.set], poputil::templateVertex(codelet, history.elementType()), tile,
            {{"history", history}, {"row", row}, {"iteration", loop.clock.at(tile, when.set)}},
            {{"num_steps", loop.plan.options.num_steps},
             {"delay", when.delay},
             {"width", static_cast<unsigned>(row.numElements())},
             {"reverse", when.reverse}});
}

void addLoadLists(Loop& loop, std::size_t l, When when) {
  const ListPlan& list = loop.plan.lists[l];
  const ListTensors& tensors = loop.tensors.lists[l];
  for (const Home& home : list.homes) {
    const auto load = [&](std::size_t width, const poplar::Tensor& history, const poplar::Tensor& row) {
      addStep(loop, "snnjax::LoadStep", home.tile, historyOf(loop.plan, width, history, home), rowsOf(row, home), when);
    };
    if (list.dense) {
      addListInputs(loop, l, home, when);
      continue;
    }
    load(list.stride, tensors.history, tensors.lists);
    if (list.valued) load(list.capacity, tensors.values_history, tensors.values);
  }
}

}  // namespace snnjax::builders
