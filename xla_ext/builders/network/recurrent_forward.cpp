// Forward: neurons, and the lists of what they fire, in parts of their blocks or as a whole, that the next step reads.
#include <poputil/VertexTemplates.hpp>

#include "builders/layout/layer_costs.hpp"
#include "builders/layout/placement.hpp"
#include "builders/network/recurrent.hpp"

namespace snnjax::builders {
namespace {

using poplar::Tensor;
using poplar::program::Copy;
using poplar::program::Execute;
using poplar::program::Repeat;
using poplar::program::Sequence;
using poputil::templateVertex;

class RecurrentForward {
 public:
  RecurrentForward(poplar::Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors, std::size_t l,
                   Pass& pass)
      : graph_(graph),
        plan_(plan),
        layer_(plan.layers[l]),
        list_(plan.lists[l + 1]),
        tensors_(tensors),
        l_(l),
        pass_(pass),
        iteration_(graph, plan.num_tiles, 0, name("iteration")),
        parts_(planParts(layer_.tiles.count, layer_.tiles.columns, list_.capacity, layer_.sample_groups[0].count)) {}

  void add(const Tensor& current, const Offered& offered) {
    const unsigned columns = layer_.tiles.columns;
    sent_ = addRows(poplar::FLOAT, columns, "sent");
    const auto add = [&](const char* set) { return graph_.addComputeSet(name(set)); };
    const poplar::ComputeSet neurons = add("neurons");
    Lists lists = {add("spikes"), add("own_lists"), add("own_ranks")};
    for (std::size_t g = 0; g < layer_.sample_groups.size(); ++g) {
      for (unsigned sample = 0; sample < layer_.sample_groups[g].count; ++sample) {
        lists_.push_back(parts_.count == 1 ? addWhole(g, sample, lists) : addParts(g, sample, lists));
      }
    }
    forEachTile(plan_, l_, [&](const LayerTile& at) { addNeurons(neurons, at, current, offered); });
    const unsigned tiles = layer_.tiles.count * static_cast<unsigned>(layer_.sample_groups.size());
    iteration_.advance(graph_, parts_.count == 1 ? lists.joined : lists.ranked, layer_.tiles.first, tiles, 1);
    pass_.before.add(addFirstSpikes(graph_, plan_, tensors_, l_));
    pass_.body.add(iteration_.reset());
    Sequence step({Execute(neurons), Execute(lists.found), Execute(lists.joined)});
    if (parts_.count > 1) step.add(Execute(lists.ranked));
    pass_.body.add(Repeat(plan_.block_steps, step));
  }

 private:
  struct Lists {
    poplar::ComputeSet found, joined, ranked;
  };
  struct Joined {
    Tensor rows, membranes;  // [1 + slots], [slots]
  };

  std::string name(const std::string& what) const { return "forward/" + what + std::to_string(l_); }

  // [blocks, batch * columns], of each sample on the tiles of its group.
  Tensor addRows(const poplar::Type& type, std::size_t columns, const char* what) {
    const Tensor all = graph_.addVariable(type, {layer_.tiles.count, plan_.options.batch * columns}, name(what));
    forEachTile(plan_, l_, [&](const LayerTile& at) { graph_.setTileMapping(at.ownRows(all), at.tile()); });
    return all;
  }

  void addNeurons(poplar::ComputeSet set, const LayerTile& at, const Tensor& current, const Offered& offered) {
    const SampleGroup& own = layer_.sample_groups[at.group];
    std::vector<Tensor> lists;
    for (unsigned b = own.first; b < own.first + own.count; ++b) {
      lists.push_back(lists_[b][parts_.count == 1 ? at.block : 0]);
    }
    std::vector<Field> fields = neuronFields(at, tensors_, pass_.block, current, offered);
    fields.insert(fields.end(), {{"lists", poplar::concat(lists)},
                                 {"weights", tensors_.layers[l_].recurrent_copies[at.group][at.block]},
                                 {"first", at.ownRows(tensors_.layers[l_].first_current)},
                                 {"iteration", iteration_.at(at.tile())},
                                 {"sent", at.ownRows(sent_)}});
    std::vector<State> states = neuronStates(at);
    states.insert(states.end(), {{"parts", parts_.count}, {"stride", 1 + parts_.slots}});
    addVertex(graph_, set, templateVertex("snnjax::LifRecurrentStep", weightsType(plan_), layer_.neuron.second_state),
              at.tile(), fields, states);
  }

  // The lists that each tile of a group makes of a whole sample for itself: [blocks, 1 + slots].
  Tensor addWhole(std::size_t g, unsigned sample, const Lists& sets) {
    std::vector<Tensor> lists;
    for (unsigned p = 0; p < layer_.tiles.count; ++p) {
      const unsigned b = layer_.sample_groups[g].first + sample;
      lists.push_back(addPart(b, layer_.tileOf(p, g), 0, layer_.tiles.count, list_.capacity, sets).rows.expand({0}));
    }
    return poplar::concat(lists);
  }

  // Of a sample, the lists of all parts, on tiles of its group: [1, parts * (1 + slots)].
  Tensor addParts(std::size_t g, unsigned sample, const Lists& sets) {
    const unsigned b = layer_.sample_groups[g].first + sample;
    std::vector<Tensor> rows, membranes, lists;
    for (unsigned part = 0; part < parts_.count; ++part) {
      const unsigned first = part * parts_.blocks, last = std::min(layer_.tiles.count, first + parts_.blocks);
      const Joined joined = addPart(b, tileOf(g, sample, part), first, last, parts_.slots, sets);
      rows.push_back(joined.rows);
      membranes.push_back(joined.membranes);
    }
    for (unsigned part = 0; part < parts_.count; ++part) {
      lists.push_back(addOn(tileOf(g, sample, part), poplar::UNSIGNED_INT, 1 + parts_.slots, "lists"));
      addVertex(graph_, sets.ranked, "snnjax::RankSpikes", tileOf(g, sample, part),
                {{"rows", poplar::concat(rows)}, {"membranes", poplar::concat(membranes)}, {"list", lists.back()}},
                {{"parts", parts_.count},
                 {"own", part},
                 {"slots", parts_.slots},
                 {"limit", list_.capacity},
                 {"columns", layer_.tiles.columns},
                 {"zeros", layer_.neurons * layer_.tiles.columns}});
    }
    return poplar::concat(lists).expand({0});
  }

  // On a tile, the spikes of a sample in the blocks [first, last), of which `limit` are kept.
  Joined addPart(unsigned b, unsigned tile, unsigned first, unsigned last, unsigned limit, const Lists& sets) {
    const unsigned columns = layer_.tiles.columns, pairs = (last - first) * columns / 2,
                   shared = ceilDivide(pairs, kWorkers) * 2;
    const Tensor rows_found = addOn(tile, poplar::UNSIGNED_INT, kWorkers * (1 + shared), "rows_found"),
                 found = addOn(tile, poplar::FLOAT, kWorkers * shared, "membranes_found");
    const Joined joined = {addOn(tile, poplar::UNSIGNED_INT, 1 + parts_.slots, "rows"),
                           addOn(tile, poplar::FLOAT, parts_.slots, "membranes")};
    addVertex(graph_, sets.found, "snnjax::ListSpikes", tile,
              {{"sent", sent_.slice(first, last).slice(b * columns, (b + 1) * columns, 1)},
               {"rows", rows_found},
               {"membranes", found}},
              {{"pairs", pairs}, {"first_id", first * columns}, {"columns", columns}, {"slots", shared}});
    addVertex(graph_, sets.joined, "snnjax::JoinSpikes", tile,
              {{"rows", rows_found}, {"membranes", found}, {"joined_rows", joined.rows}, {"joined", joined.membranes}},
              {{"slots", shared}, {"limit", limit}, {"columns", columns}});
    return joined;
  }

  Tensor addOn(unsigned tile, const poplar::Type& type, std::size_t elements, const char* what) {
    const Tensor added = graph_.addVariable(type, {elements}, name(what));
    graph_.setTileMapping(added, tile);
    return added;
  }

  // Parts of samples lie evenly spread over the tiles of their group.
  unsigned tileOf(std::size_t g, unsigned sample, unsigned part) const {
    const unsigned count = parts_.count * layer_.sample_groups[g].count,
                   index = part * layer_.sample_groups[g].count + sample;
    return layer_.tileOf(std::size_t{index} * layer_.tiles.count / count, g);
  }

  poplar::Graph& graph_;
  const NetworkPlan& plan_;
  const LayerPlan& layer_;
  const ListPlan& list_;
  const NetworkTensors& tensors_;
  std::size_t l_;
  Pass& pass_;
  Counter iteration_;  // of the loop over a block's steps
  PartsPlan parts_;
  Tensor sent_;                // [blocks, batch * columns]
  std::vector<Tensor> lists_;  // of each sample, of the step before: addWhole, or addParts
};

}  // namespace

void addRecurrentForward(poplar::Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors, std::size_t l,
                         const Tensor& current, const Offered& offered, Pass& pass) {
  RecurrentForward(graph, plan, tensors, l, pass).add(current, offered);
}

}  // namespace snnjax::builders
