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
    const ComputeSet neurons = addSet("neurons");
    for (std::size_t g = 0; g < layer.sample_groups.size(); ++g) {
      for (unsigned sample = 0; sample < layer.sample_groups[g].count; ++sample) addSample(g, sample);
    }
    const Tensor own_current = bring(current);
    forEachTile(*this, [&](const LayerTile& at) { addNeurons(neurons, at, own_current, offered); });
    const unsigned tiles = layer.tiles.count * static_cast<unsigned>(layer.sample_groups.size());
    iteration_.advance(graph, parts_.are_merged ? merged_ : ranked_, layer.tiles.first, tiles, 1);
    pass.before.add(addFirstSpikes(*this));
    pass.body.add(iteration_.reset());
    Sequence step({Execute(neurons), Execute(found_), Execute(joined_)});
    step.add(parts_.are_merged ? mergeParts() : Execute(ranked_));
    pass.body.add(Repeat(plan.block_steps, step));
  }

 private:
  ComputeSet addSet(const char* what) { return graph.addComputeSet(name(what)); }

  // [blocks, batch * columns], of each sample on the tiles of its group.
  Tensor addRows(const Type& type, std::size_t columns, const char* what) {
    const Tensor all = graph.addVariable(type, {layer.tiles.count, plan.options.batch * columns}, name(what));
    forEachTile(*this, [&](const LayerTile& at) { graph.setTileMapping(at.ownRows(all), at.tile()); });
    return all;
  }

  // To the tiles of the layer, once and not in every step.
  Tensor bring(const Tensor& current) {
    if (layer.row_parts == 1) return current;
    const Tensor own = LayerPass::addRows(layer.tiles.columns, name("own_current"));
    pass.body.add(Copy(current, own));
    return own;
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
              at.tile(), fields, with(neuronStates(at), {{"parts", parts_.lists}, {"stride", 1 + parts_.of_list}}));
  }

  // Of a sample, the lists of all parts, [parts, 1 + slots], on tiles of its group.
  void addSample(std::size_t g, unsigned sample) {
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
      addVertex(graph, found_, "snnjax::ListSpikes", tile,
                {{"sent", sent_.slice(first, last).slice(b * columns, (b + 1) * columns, 1)},
                 {"rows", rows_found[part]},
                 {"membranes", found_membranes[part]}},
                {{"pairs", (last - first) * columns / 2},
                 {"first_id", first * columns},
                 {"columns", columns},
                 {"slots", shared}});
      addVertex(graph, joined_, "snnjax::JoinSpikes", tile,
                {{"rows", rows_found[part]},
                 {"membranes", found_membranes[part]},
                 {"joined_rows", rows[part]},
                 {"joined", membranes[part]}},
                {{"slots", shared}, {"capacity", parts_.slots}, {"columns", columns}});
      addVertex(graph, ranked_, "snnjax::RankSpikes", tile,
                {{"rows", rows}, {"membranes", membranes}, {"list", lists[part]}},
                {{"parts", parts_.count},
                 {"own", part},
                 {"slots", parts_.slots},
                 {"limit", list_.capacity},
                 {"columns", columns}});
    }
    lists_.push_back(parts_.are_merged ? merge(tileOf(g, sample, 0), rows, lists) : lists.flatten());
  }

  // The list of a sample, from those of its parts as they are joined, and as they are ranked.
  Tensor merge(unsigned tile, const Tensor& joined, const Tensor& ranked) {
    const Tensor list = graph.addVariable(UNSIGNED_INT, {parts_.of_list + 1}, name("list")),
                 too_many = graph.addVariable(UNSIGNED_INT, {1}, name("too_many"));
    graph.setTileMapping(list, tile);
    graph.setTileMapping(too_many, tile);
    const std::vector<State> states = {{"parts", parts_.count}, {"slots", parts_.slots}, {"limit", list_.capacity}};
    addVertex(graph, merged_, "snnjax::MergeSpikes<false>", tile,
              {{"rows", joined}, {"list", list}, {"too_many", too_many}}, states);
    addVertex(graph, again_, "snnjax::MergeSpikes<true>", tile, {{"rows", ranked}, {"list", list}}, states);
    too_many_.push_back(too_many);
    return list;
  }

  // Ranks follow where any sample has too many.
  Sequence mergeParts() {
    const Tensor any = graph.addVariable(poplar::BOOL, {}, name("any"));
    graph.setTileMapping(any, layer.tiles.first);
    const ComputeSet asked = addSet("too_many");
    addVertex(graph, asked, templateVertex("snnjax::AnyWord", poplar::BOOL), layer.tiles.first,
              {{"in", poplar::concat(too_many_)}, {"any", any}}, {{"count", static_cast<unsigned>(too_many_.size())}});
    return Sequence({Execute(merged_), Execute(asked),
                     poplar::program::If(any, Sequence({Execute(ranked_), Execute(again_)}), Sequence())});
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
  std::vector<Tensor> lists_;  // of each sample, of the step before: [lists * (1 + slots)]
  std::vector<Tensor> too_many_;
  ComputeSet found_ = addSet("spikes"), joined_ = addSet("own_lists"), ranked_ = addSet("own_ranks"),
             merged_ = addSet("merged"), again_ = addSet("merged_ranks");
};

}  // namespace

void addRecurrentForward(const LayerPass& of, const Tensor& current, const Offered& offered) {
  RecurrentForward(of).add(current, offered);
}

}  // namespace snnjax::builders
