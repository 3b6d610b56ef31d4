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
Tensor addGroupSums(Loop& loop, std::size_t l, const Tensor& dots) {
  const LayerPlan& layer = loop.plan.layers[l];
  const ListPlan& list = loop.plan.lists[l];
  const std::size_t batch = loop.plan.options.batch, groups = layer.groups.size();
  const Tensor by_tile = dots.reshape({layer.tiles.count, batch, list.capacity});
  const Tensor sums = loop.graph.addVariable(poplar::FLOAT, {groups, batch, list.capacity},
                                             loop.name + "/group_sums" + std::to_string(l));
  for (std::size_t g = 0; g < groups; ++g) {
    const TileGroup& group = layer.groups[g];
    for (std::size_t h = 0; h < list.homes.size(); ++h) {
      const Tensor out = rowsOf(sums[g], list.homes[h]);
      const unsigned tile = layer.leader(g, list, h);
      loop.graph.setTileMapping(out, tile);
      const Tensor in = rowsOf(by_tile.slice(group.first, group.first + group.count), list.homes[h], 1);
      addSum(loop, 1, tile, in, out, group.count);
    }
  }
  return sums;
}

// Dense rows of the layer that fired, so that its tiles need not search, in an order that lets each of them receive
// one message from each home: a block [tiles, samples, columns] for every home.
Tensor addDenseRows(Loop& loop, std::size_t l, const Tensor& values) {
  const LayerPlan& below = loop.plan.layers[l - 1];
  const ListPlan& list = loop.plan.lists[l];
  const Tensor rows =
      addAtHomes(loop.graph, poplar::FLOAT, list.homes, below.paddedNeurons(), loop.name + "/rows" + std::to_string(l));
  for (const Home& home : list.homes) {
    addVertex(loop.graph, loop.sets[1], poputil::templateVertex("snnjax::ScatterList", UNSIGNED_SHORT), home.tile,
              {{"list", historyOf(loop.plan, list, loop.tensors.lists[l].history, home)},
               {"values", rowsOf(values, home)},
               {"row", rowsOf(rows, home)},
               {"iteration", loop.clock.at(home.tile, 1)}},
              {{"rows", home.samples},
               {"stride", list.stride},
               {"capacity", list.capacity},
               {"columns", below.tiles.columns},
               {"num_neurons", below.paddedNeurons()},
               {"num_steps", loop.plan.options.num_steps},
               {"delay", loop.plan.layers[l].backward_delay + 1}});
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

void addReversedLists(Loop& loop, std::size_t l) {
  for (const Home& home : loop.plan.lists[l].homes) {
    addLoadStep(loop, l, home, loop.tensors.lists[l].lists, 1, loop.plan.layers[l].backward_delay - 1, true);
  }
}

Tensor addListGradient(Loop& loop, std::size_t l, const Tensor& dots) {
  const ListPlan& list = loop.plan.lists[l];
  const Tensor sums = addGroupSums(loop, l, dots);
  const Tensor values = addAtHomes(loop.graph, poplar::FLOAT, list.homes, list.capacity,
                                   loop.name + "/list_gradient" + std::to_string(l));
  for (const Home& home : list.homes) {
    addSum(loop, 0, home.tile, rowsOf(sums, home, 1), rowsOf(values, home), loop.plan.layers[l].groups.size());
  }
  return byTile(loop.plan.layers[l - 1], list.homes, addDenseRows(loop, l, values));
}

}  // namespace snnjax::builders
