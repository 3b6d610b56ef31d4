// Forward: neurons, and the lists of what they fire, in parts of their blocks, that the next step reads.
#include "builders/layout/layer_costs.hpp"
#include "builders/network/recurrent.hpp"

namespace snnjax::builders {
namespace {

class RecurrentForward : LayerPass {
 public:
  explicit RecurrentForward(const LayerPass& of)
      : LayerPass(of),
        iteration_(graph, plan.num_tiles, 0, name("iteration")),
        parts_(planParts(layer.tiles.count, layer.tiles.columns, list_.capacity, layer.sample_groups[0].count)) {}

  void add(const Tensor& current, const Offered& offered) {
    const unsigned columns = layer.tiles.columns;
    sent_ = addRows(FLOAT, columns, "sent");
    const auto add = [&](const char* set) { return graph.addComputeSet(name(set)); };
    const ComputeSet neurons = add("neurons"), found = add("spikes"), joined = add("own_lists"),
                     ranked = add("own_ranks");
    for (std::size_t g = 0; g < layer.sample_groups.size(); ++g) {
      for (unsigned sample = 0; sample < layer.sample_groups[g].count; ++sample) {
        lists_.push_back(addSample(g, sample, found, joined, ranked));
      }
    }
    forEachTile(*this, [&](const LayerTile& at) { addNeurons(neurons, at, current, offered); });
    const unsigned tiles = layer.tiles.count * static_cast<unsigned>(layer.sample_groups.size());
    iteration_.advance(graph, ranked, layer.tiles.first, tiles, 1);
    pass.before.add(addFirstSpikes(*this));
    pass.body.add(iteration_.reset());
    pass.body.add(
        Repeat(plan.block_steps, Sequence({Execute(neurons), Execute(found), Execute(joined), Execute(ranked)})));
  }

 private:
  // [blocks, batch * columns], of each sample on the tiles of its group.
  Tensor addRows(const Type& type, std::size_t columns, const char* what) {
    const Tensor all = graph.addVariable(type, {layer.tiles.count, plan.options.batch * columns}, name(what));
    forEachTile(*this, [&](const LayerTile& at) { graph.setTileMapping(at.ownRows(all), at.tile()); });
    return all;
  }

  void addNeurons(ComputeSet set, const LayerTile& at, const Tensor& current, const Offered& offered) {
    const SampleGroup& own = layer.sample_groups[at.group];
    const std::vector<Tensor> lists(lists_.begin() + own.first, lists_.begin() + own.first + own.count);
    const std::vector<Field> fields =
        with(neuronFields(at, current, offered), {{"lists", poplar::concat(lists)},
                                                  {"weights", tensors.recurrent_copies[at.group][at.block]},
                                                  {"first", at.ownRows(tensors.first_current)},
                                                  {"iteration", iteration_.at(at.tile())},
                                                  {"sent", at.ownRows(sent_)}});
    addVertex(graph, set, templateVertex("snnjax::LifRecurrentStep", weightsType(plan), layer.neuron.second_state),
              at.tile(), fields, with(neuronStates(at), {{"parts", parts_.count}, {"stride", 1 + parts_.slots}}));
  }

  // Of a sample, the lists of all parts: [parts, 1 + slots], on tiles of its group.
  Tensor addSample(std::size_t g, unsigned sample, ComputeSet found, ComputeSet joined, ComputeSet ranked) {
    const unsigned b = layer.sample_groups[g].first + sample, columns = layer.tiles.columns;
    const auto add = [&](const Type& type, std::size_t width, const char* what) {
      const Tensor parts = graph.addVariable(type, {parts_.count, width}, name(what));
      for (unsigned part = 0; part < parts_.count; ++part) graph.setTileMapping(parts[part], tileOf(g, sample, part));
      return parts;
    };
    const unsigned shared = ceilDivide(parts_.blocks * columns / 2, kWorkers) * 2;
    const Tensor rows = add(UNSIGNED_INT, 1 + parts_.slots, "rows"), membranes = add(FLOAT, parts_.slots, "membranes"),
                 lists = add(UNSIGNED_INT, 1 + parts_.slots, "lists"),
                 rows_found = add(UNSIGNED_INT, kWorkers * (1 + shared), "rows_found"),
                 found_membranes = add(FLOAT, kWorkers * shared, "membranes_found");
    for (unsigned part = 0; part < parts_.count; ++part) {
      const unsigned tile = tileOf(g, sample, part), first = part * parts_.blocks,
                     last = std::min(layer.tiles.count, first + parts_.blocks);
      addVertex(graph, found, "snnjax::ListSpikes", tile,
                {{"sent", sent_.slice(first, last).slice(b * columns, (b + 1) * columns, 1)},
                 {"rows", rows_found[part]},
                 {"membranes", found_membranes[part]}},
                {{"pairs", (last - first) * columns / 2},
                 {"first_id", first * columns},
                 {"columns", columns},
                 {"slots", shared}});
      addVertex(graph, joined, "snnjax::JoinSpikes", tile,
                {{"rows", rows_found[part]},
                 {"membranes", found_membranes[part]},
                 {"joined_rows", rows[part]},
                 {"joined", membranes[part]}},
                {{"slots", shared}, {"capacity", parts_.slots}, {"columns", columns}});
      addVertex(graph, ranked, "snnjax::RankSpikes", tile,
                {{"rows", rows}, {"membranes", membranes}, {"list", lists[part]}},
                {{"parts", parts_.count},
                 {"own", part},
                 {"slots", parts_.slots},
                 {"limit", list_.capacity},
                 {"columns", columns}});
    }
    return lists.flatten();
  }

  // Parts of samples lie evenly spread over the tiles of their group.
  unsigned tileOf(std::size_t g, unsigned sample, unsigned part) const {
    const unsigned count = parts_.count * layer.sample_groups[g].count,
                   index = part * layer.sample_groups[g].count + sample;
    return layer.tileOf(std::size_t{index} * layer.tiles.count / count, g);
  }

  const ListPlan& list_ = plan.lists[l + 1];  // that it fires
  Counter iteration_;                         // of the loop over a block's steps
  PartsPlan parts_;
  Tensor sent_;                // [blocks, batch * columns]
  std::vector<Tensor> lists_;  // of each sample, of the step before: [parts * (1 + slots)]
};

}  // namespace

void addRecurrentForward(const LayerPass& of, const Tensor& current, const Offered& offered) {
  RecurrentForward(of).add(current, offered);
}

}  // namespace snnjax::builders
