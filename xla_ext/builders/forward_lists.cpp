#include "forward_lists.hpp"

#include <algorithm>
#include <poputil/VertexTemplates.hpp>

#include "vertices.hpp"

namespace snnjax::builders {
namespace {

using poplar::UNSIGNED_SHORT;
using poplar::program::Copy;
using poplar::program::Sequence;

// The candidates of one layer: for each part of a group of tiles a record and the listed membranes of every sample.
struct Candidates {
  unsigned slots = 0;
  unsigned stride = 0;
  poplar::Tensor records;    // ids [groups, batch, parts, stride]
  poplar::Tensor membranes;  // float [groups, batch, parts, slots]
};

Candidates addCandidates(Loop& loop, std::size_t l) {
  const LayerPlan& layer = loop.plan.layers[l];
  const ListPlan& list = loop.plan.lists[l + 1];
  const std::string name = loop.name + "/candidates" + std::to_string(l) + "/";
  Candidates candidates;
  // An even number of slots: membranes of two samples then never share 64 bits.
  const unsigned neurons = layer.groups.front().count * layer.tiles.columns;
  candidates.slots = (std::min(list.capacity, (neurons + layer.parts - 1) / layer.parts) + 1) / 2 * 2;
  candidates.stride = listStride(candidates.slots);
  const std::size_t groups = layer.groups.size(), batch = loop.plan.options.batch;
  candidates.records =
      loop.graph.addVariable(UNSIGNED_SHORT, {groups, batch, layer.parts, candidates.stride}, name + "records");
  candidates.membranes =
      loop.graph.addVariable(poplar::FLOAT, {groups, batch, layer.parts, candidates.slots}, name + "membranes");
  for (std::size_t g = 0; g < groups; ++g) {
    for (std::size_t h = 0; h < list.homes.size(); ++h) {
      loop.graph.setTileMapping(rowsOf(candidates.records[g], list.homes[h]), layer.leader(g, list, h));
      loop.graph.setTileMapping(rowsOf(candidates.membranes[g], list.homes[h]), layer.leader(g, list, h));
    }
  }
  return candidates;
}

// A leader's copy of its group's thresholds, made once: an exchange in each step would cost a message per tile.
poplar::Tensor thresholdAt(Loop& loop, const poplar::Tensor& threshold, const TileGroup& group, unsigned tile,
                           Sequence& before) {
  const poplar::Tensor own = threshold.slice(group.first, group.first + group.count).flatten();
  const poplar::Tensor copy = loop.graph.addVariable(poplar::FLOAT, own.shape(), loop.name + "/threshold");
  loop.graph.setTileMapping(copy, tile);
  before.add(Copy(own, copy));
  return copy;
}

void addLeader(Loop& loop, std::size_t l, std::size_t g, std::size_t h, const Candidates& candidates,
               Sequence& before) {
  const LayerPlan& layer = loop.plan.layers[l];
  const ListPlan& list = loop.plan.lists[l + 1];
  const LayerTensors& tensors = loop.tensors.layers[l];
  const TileGroup& group = layer.groups[g];
  const Home& home = list.homes[h];
  const unsigned columns = layer.tiles.columns, tile = layer.leader(g, list, h), first_id = group.first * columns;
  const bool raises = layer.neuron.raises_threshold;
  const auto ofGroup = [&](const poplar::Tensor& blocks) {  // [tiles, samples, columns]: one message a tile
    const poplar::Tensor all = blocks.reshape({layer.tiles.count, loop.plan.options.batch, columns});
    return rowsOf(all.slice(group.first, group.first + group.count), home, 1);
  };
  std::vector<Field> fields = {{"v", ofGroup(tensors.v)},
                               {"threshold", thresholdAt(loop, tensors.threshold, group, tile, before)},
                               {"second_threshold", thresholdAt(loop, tensors.second_threshold, group, tile, before)},
                               {"lists", rowsOf(candidates.records[g], home)},
                               {"membranes", rowsOf(candidates.membranes[g], home)}};
  if (raises) fields.push_back({"raise", ofGroup(tensors.raise)});
  addVertex(loop.graph, loop.sets[1], poputil::templateVertex("snnjax::SelectCandidates", UNSIGNED_SHORT, raises), tile,
            fields,
            {{"rows", home.samples},
             {"neurons", std::min(group.count * columns, layer.neurons - first_id)},
             {"columns", columns},
             {"parts", layer.parts},
             {"slots", candidates.slots},
             {"stride", candidates.stride},
             {"capacity", list.capacity},
             {"first_id", first_id},
             {"num_neurons", list.num_neurons}});
}

// Merges what the groups list into `made` [batch, stride].
void addMerge(Loop& loop, std::size_t l, const Home& home, const Candidates& candidates, const poplar::Tensor& made,
              When when) {
  const NetworkPlan& plan = loop.plan;
  const ListPlan& list = plan.lists[l + 1];
  // [groups, parts, samples, ...]: ids ascend from record to record.
  const auto byPart = [&](const poplar::Tensor& tensor) { return rowsOf(tensor, home, 1).dimShuffle({0, 2, 1, 3}); };
  addVertex(loop.graph, loop.sets[when.set], poputil::templateVertex("snnjax::CombineCandidates", UNSIGNED_SHORT),
            home.tile,
            {{"lists", byPart(candidates.records)},
             {"membranes", byPart(candidates.membranes)},
             {"list", rowsOf(made, home)},
             {"dropped", rowsOf(loop.tensors.lists[l + 1].dropped, home)},
             {"iteration", loop.clock.at(home.tile, when.set)}},
            {{"rows", home.samples},
             {"num_lists", static_cast<unsigned>(plan.layers[l].groups.size()) * plan.layers[l].parts},
             {"slots", candidates.slots},
             {"stride_in", candidates.stride},
             {"stride", list.stride},
             {"capacity", list.capacity},
             {"num_neurons", list.num_neurons},
             {"num_steps", plan.options.num_steps},
             {"delay", when.delay}});
}

void addStore(Loop& loop, std::size_t l, const Home& home, const poplar::Tensor& made, When when) {
  const poplar::Tensor& history = loop.tensors.lists[l + 1].history;
  if (!history.valid()) return;
  addStep(loop, "snnjax::StoreStep", home.tile, historyOf(loop.plan, loop.plan.lists[l + 1].stride, history, home),
          rowsOf(made, home), when);
}

// How a home's lists are made in a loop of two sets, through `made`, and in a loop of three.
void addHome(Loop& loop, std::size_t l, const Home& home, const Candidates& candidates, const poplar::Tensor& made) {
  const ListPlan& list = loop.plan.lists[l + 1];
  const poplar::Tensor& lists = loop.tensors.lists[l + 1].lists;
  const unsigned delay = loop.plan.layers[l].delay;
  if (loop.sets.size() > 2) {
    addMerge(loop, l, home, candidates, lists, {.set = 2, .delay = delay});
    addStore(loop, l, home, lists, {.set = 0, .delay = delay + 1});
    return;
  }
  addMerge(loop, l, home, candidates, made, {.set = 0, .delay = delay + 1});
  addVertex(loop.graph, loop.sets[1], poputil::templateVertex("snnjax::CopyRow", UNSIGNED_SHORT), home.tile,
            {{"in", rowsOf(made, home)}, {"out", rowsOf(lists, home)}}, {{"width", home.samples * list.stride}});
  addStore(loop, l, home, made, {.set = 1, .delay = delay + 1});
}

}  // namespace

Sequence addSelection(Loop& loop, std::size_t l) {
  const ListPlan& list = loop.plan.lists[l + 1];
  const Candidates candidates = addCandidates(loop, l);
  poplar::Tensor made;
  if (loop.sets.size() == 2) {
    made = addAtHomes(loop.graph, UNSIGNED_SHORT, list.homes, list.stride, loop.name + "/made" + std::to_string(l));
  }
  Sequence before;
  for (std::size_t g = 0; g < loop.plan.layers[l].groups.size(); ++g) {
    for (std::size_t h = 0; h < list.homes.size(); ++h) addLeader(loop, l, g, h, candidates, before);
  }
  for (const Home& home : list.homes) addHome(loop, l, home, candidates, made);
  return before;
}

}  // namespace snnjax::builders
