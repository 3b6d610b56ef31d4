#include "backward_lists.hpp"

#include <poputil/VertexTemplates.hpp>

#include "vertices.hpp"

namespace snnjax::builders {
namespace {

using poplar::Tensor;
using poplar::UNSIGNED_SHORT;

// out[j] = sum over rows of in[rows, width].
void addSum(Loop& loop, unsigned set, unsigned tile, const Tensor& in, const Tensor& out, std::size_t rows) {
  addVertex(loop.graph, loop.sets[set], "snnjax::SumRows", tile, {{"in", in}, {"out", out}},
            {{"rows", static_cast<unsigned>(rows)}, {"columns", static_cast<unsigned>(out.numElements())}});
}

// [groups, batch, capacity]: the sums over the tiles of each group, on the group's leaders.
Tensor addGroupSums(Loop& loop, std::size_t l, const ListDots& from) {
  const LayerPlan& layer = loop.plan.layers[from.reader];
  const ListPlan& list = loop.plan.lists[l];
  const std::size_t batch = loop.plan.options.batch, groups = layer.groups.size();
  const Tensor by_tile = from.dots.reshape({layer.tiles.count, batch, list.capacity});
  const Tensor sums =
      loop.graph.addVariable(poplar::FLOAT, {groups, batch, list.capacity},
                             loop.name + "/group_sums" + std::to_string(l) + "by" + std::to_string(from.reader));
  for (std::size_t g = 0; g < groups; ++g) {
    const TileGroup& group = layer.groups[g];
    for (std::size_t h = 0; h < list.homes.size(); ++h) {
      const Tensor out = rowsOf(sums[g], list.homes[h]);
      const unsigned tile = layer.leader(g, list, h);
      loop.graph.setTileMapping(out, tile);
      const Tensor in = rowsOf(by_tile.slice(group.first, group.first + group.count), list.homes[h], 1);
      addSum(loop, listStages(loop.plan).group_sums, tile, in, out, group.count);
    }
  }
  return sums;
}

// Dense rows for the layer that fired, so that its tiles need no search, ordered so that each tile receives one message
// per home: a block [tiles, samples, columns] for every home.
Tensor addDenseRows(Loop& loop, std::size_t l, const Tensor& values) {
  const LayerPlan& below = loop.plan.layers[l - 1];
  const ListPlan& list = loop.plan.lists[l];
  const ListStages stages = listStages(loop.plan);
  const Tensor rows =
      addAtHomes(loop.graph, poplar::FLOAT, list.homes, below.paddedNeurons(), loop.name + "/rows" + std::to_string(l));
  for (const Home& home : list.homes) {
    addVertex(loop.graph, loop.sets[stages.rows], poputil::templateVertex("snnjax::ScatterList", UNSIGNED_SHORT),
              home.tile,
              {{"list", historyOf(loop.plan, list.stride, loop.tensors.lists[l].history, home)},
               {"values", rowsOf(values, home)},
               {"row", rowsOf(rows, home)},
               {"iteration", loop.clock.at(home.tile, stages.rows)}},
              {{"rows", home.samples},
               {"stride", list.stride},
               {"capacity", list.capacity},
               {"columns", below.tiles.columns},
               {"num_neurons", below.paddedNeurons()},
               {"num_steps", loop.plan.options.num_steps},
               {"delay", loop.plan.listDelay(l) + stages.late}});
  }
  return rows;
}

// The same rows, tile by tile: [tiles below, batch * columns below].
Tensor byTile(const LayerPlan& below, const std::vector<Home>& homes, const Tensor& rows) {
  std::vector<Tensor> blocks;
  for (const Home& home : homes) {
    blocks.push_back(rowsOf(rows, home).flatten().reshape({below.tiles.count, home.samples * below.tiles.columns}));
  }
  return poplar::concat(blocks, 1);
}

}  // namespace

ListStages listStages(const NetworkPlan& plan) {
  if (plan.isRecurrent()) return {.group_sums = 2, .home_sums = 3, .rows = 4, .late = 0};
  return {.group_sums = 1, .home_sums = 0, .rows = 1, .late = 1};
}

Tensor addListGradient(Loop& loop, std::size_t l, const std::vector<ListDots>& dots) {
  const ListPlan& list = loop.plan.lists[l];
  std::vector<Tensor> sums;
  for (const ListDots& each : dots) sums.push_back(addGroupSums(loop, l, each));
  const Tensor all = poplar::concat(sums);
  const Tensor values = addAtHomes(loop.graph, poplar::FLOAT, list.homes, list.capacity,
                                   loop.name + "/list_gradient" + std::to_string(l));
  for (const Home& home : list.homes) {
    addSum(loop, listStages(loop.plan).home_sums, home.tile, rowsOf(all, home, 1), rowsOf(values, home), all.dim(0));
  }
  return values;
}

Tensor addDenseGradient(Loop& loop, std::size_t l, const Tensor& values) {
  return byTile(loop.plan.layers[l - 1], loop.plan.lists[l].homes, addDenseRows(loop, l, values));
}

void addInputsGradient(Loop& loop, const Tensor& values, const Tensor& g_inputs) {
  const ListPlan& list = loop.plan.lists.front();
  const ListStages stages = listStages(loop.plan);
  const When when = {.set = stages.rows, .delay = loop.plan.listDelay(0) + stages.late, .reverse = true};
  for (const Home& home : list.homes) {
    addStep(loop, "snnjax::StoreStep", home.tile, historyOf(loop.plan, list.capacity, g_inputs, home),
            rowsOf(values, home), when);
  }
}

}  // namespace snnjax::builders
