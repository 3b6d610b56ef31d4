#include "scan.hpp"

#include <algorithm>
#include <poputil/VertexTemplates.hpp>

namespace snnjax::builders {

using poplar::Tensor;

Tensor addScanRows(poplar::Graph& graph, const NetworkPlan& plan, std::size_t l, std::size_t width,
                   const std::string& name) {
  const LayerPlan& layer = plan.layers[l];
  std::vector<Tensor> groups;
  for (std::size_t g = 0; g < layer.sample_groups.size(); ++g) {
    const std::size_t rows = std::size_t{layer.sample_groups[g].count} * plan.options.num_steps;
    groups.push_back(addGroup(graph, poplar::FLOAT, layer, g, rows * width, name));
  }
  return poplar::concat(groups, 1);
}

Part partOf(const LayerPlan& layer, std::size_t elements, std::size_t group) {
  const std::size_t groups = layer.sample_groups.size(), each = (elements + 2 * groups - 1) / (2 * groups) * 2;
  return {std::min(elements, group * each), std::min(elements, (group + 1) * each)};
}

Tensor addSpread(poplar::Graph& graph, const poplar::Type& type, const LayerPlan& layer, std::size_t elements,
                 const std::string& name) {
  const Tensor blocks = graph.addVariable(type, {layer.tiles.count, elements}, name);
  for (unsigned p = 0; p < layer.tiles.count; ++p) {
    for (std::size_t g = 0; g < layer.sample_groups.size(); ++g) {
      const Part part = partOf(layer, elements, g);
      if (part.first < part.last) graph.setTileMapping(blocks[p].slice(part.first, part.last), layer.tileOf(p, g));
    }
  }
  return blocks;
}

Tensor ScanTile::ownRows(const Tensor& rows) const {
  const SampleGroup& own = layer().sample_groups[group];
  const std::size_t each = rows.dim(1) / plan.options.batch;
  return rows[block].slice(own.first * each, (own.first + own.count) * each);
}

Tensor ScanTile::ownStates(const Tensor& states) const {
  const SampleGroup& own = layer().sample_groups[group];
  const std::size_t columns = layer().tiles.columns, rows = states.dim(1) / (plan.options.batch * columns);
  const Tensor all = states[block].reshape({rows, plan.options.batch, columns});
  return all.slice(own.first, own.first + own.count, 1).flatten();
}

Tensor ScanTile::fromHomes(const Tensor& rows) const {
  const SampleGroup& own = layer().sample_groups[group];
  const std::size_t each = rows.numElements() / plan.options.batch;
  return rows.flatten().slice(own.first * each, (own.first + own.count) * each);
}

Tensor ScanTile::ofSamples(const Tensor& tensor) const {
  const SampleGroup& own = layer().sample_groups[group];
  return tensor.slice(own.first, own.first + own.count);
}

const Tensor& recordsOf(const NetworkPlan& plan, const NetworkTensors& tensors, std::size_t l) {
  return plan.lists[l].dense ? tensors.lists[l].lists : tensors.lists[l].history;
}

const Tensor& valuesOf(const NetworkPlan& plan, const NetworkTensors& tensors, std::size_t l) {
  return plan.lists[l].dense ? tensors.lists[l].values : tensors.lists[l].values_history;
}

std::vector<State> rowStates(const ScanTile& at, const ListPlan& list) {
  return {{"rows", at.rows()},
          {"stride", list.stride},
          {"capacity", list.capacity},
          {"num_inputs", list.num_neurons},
          {"neurons", at.layer().tiles.columns}};
}

NoClock::NoClock(poplar::Graph& graph, const NetworkPlan& plan)
    : zeros_(graph.addConstant(poplar::UNSIGNED_INT, {plan.num_tiles}, 0U, "no_clock")) {
  for (unsigned tile = 0; tile < plan.num_tiles; ++tile) graph.setTileMapping(zeros_[tile], tile);
}

poplar::program::Sequence listDenseInputs(poplar::Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors,
                                          const NoClock& no_clock) {
  const ListPlan& list = plan.lists.front();
  if (!list.dense) return poplar::program::Sequence();
  const ListTensors& at_homes = tensors.lists.front();
  const poplar::ComputeSet set = graph.addComputeSet("list_inputs");
  for (const Home& home : list.homes) {
    addVertex(graph, set, poputil::templateVertex("snnjax::ListInputs", poplar::UNSIGNED_SHORT), home.tile,
              {{"history", historyOf(plan, list.capacity, at_homes.values_history, home)},
               {"lists", rowsOf(at_homes.lists, home)},
               {"values", rowsOf(at_homes.values, home)},
               {"iteration", no_clock.at(home.tile)}},
              {{"num_steps", 1U},
               {"delay", 0U},
               {"rows", home.samples},
               {"stride", list.stride},
               {"num_inputs", list.num_neurons},
               {"reverse", false}});
  }
  return poplar::program::Sequence({poplar::program::Execute(set)});
}

}  // namespace snnjax::builders
