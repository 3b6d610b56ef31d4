#include "loop.hpp"

#include <popops/Fill.hpp>
#include <popops/Zero.hpp>
#include <poputil/VertexTemplates.hpp>

#include "vertices.hpp"

namespace snnjax::builders {

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

void addLoadStep(Loop& loop, std::size_t l, const Home& home, const poplar::Tensor& into, unsigned set, unsigned delay,
                 bool reverse) {
  const ListPlan& list = loop.plan.lists[l];
  const poplar::Tensor history = historyOf(loop.plan, list, loop.tensors.lists[l].history, home);
  addVertex(loop.graph, loop.sets[set], poputil::templateVertex("snnjax::LoadStep", poplar::UNSIGNED_SHORT), home.tile,
            {{"history", history}, {"row", rowsOf(into, home)}, {"iteration", loop.clock.at(home.tile, set)}},
            {{"num_steps", loop.plan.options.num_steps},
             {"delay", delay},
             {"width", home.samples * list.stride},
             {"reverse", reverse}});
}

}  // namespace snnjax::builders
