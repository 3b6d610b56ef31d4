// Forward: neurons, and the lists of what they fire, in parts of their blocks, that the next step reads.
#include "builders/layout/layer_costs.hpp"
#include "builders/network/recurrent.hpp"

namespace snnjax::builders {
namespace {

class RecurrentForward : LayerPass {
 public:
  explicit RecurrentForward(const LayerPass& of)
      : LayerPass(of),
        iterations_(graph, plan.num_tiles, 0, name("iterations"), 2 * kShares),
        parts_(planParts({layer.tiles.count, layer.tiles.columns, list_.capacity, double{1} * list_.listed,
                          layer.sample_groups[0].count})) {}

  // Whether the marks are packed.
  bool add(const Tensor& current, const Offered& offered) {
    const ComputeSet neurons = addSet("neurons");
    parts_.are_blocks ? addBlocks(offered) : addSamples();
    const Tensor own_current = bring(current);
    forEachTile(*this, [&](const LayerTile& at) { addNeurons(neurons, at, own_current, offered); });
    pass.before.add(addFirstSpikes(*this));
    pass.body.add(iterations_.reset());
    Sequence step({Execute(neurons), Execute(found_)});
    if (!parts_.are_blocks) {
      step.add(Execute(joined_));
      step.add(parts_.are_merged ? mergeParts() : Execute(ranked_));
    }
    pass.body.add(Repeat(plan.block_steps, step));
    return parts_.are_blocks;
  }

 private:
  ComputeSet addSet(const char* what) { return graph.addComputeSet(name(what)); }

  // To the tiles of the layer, once and not in every step.
  Tensor bring(const Tensor& current) {
    if (layer.row_parts == 1) return current;
    const Tensor own = addRows(layer.tiles.columns, name("own_current"));
    pass.body.add(Copy(current, own));
    return own;
  }

  void addNeurons(ComputeSet set, const LayerTile& at, const Tensor& current, const Offered& offered) {
    const std::vector<Field> fields =
        with(neuronFields(at, current, offered), {{"lists", listsOf(at)},
                                                  {"weights", tensors.recurrent_copies[at.group][at.block]},
                                                  {"first", at.ownRows(tensors.first_current)},
                                                  {"iterations", iterations_.ofWorkers(at.tile(), 0)},
                                                  {"sent", at.ownRows(sent_)},
                                                  {"kept", at.ofGroup(kept_)}});
    const std::vector<State> states = with(neuronStates(at), {{"parts", parts_.lists}, {"stride", 1 + parts_.of_list}});
    addVertex(graph, set,
              templateVertex("snnjax::LifRecurrentStep", weightsType(plan), layer.neuron.second_state,
                             parts_.are_blocks, plan.options.counts),
              at.tile(), fields, parts_.are_blocks ? with(states, {{"limit", list_.capacity}}) : states);
  }

  // Of the samples of a tile, or of its group.
  Tensor listsOf(const LayerTile& at) const {
    if (parts_.are_blocks) return lists_[at.group];
    const SampleGroup& own = layer.sample_groups[at.group];
    return poplar::concat(std::vector<Tensor>(lists_.begin() + own.first, lists_.begin() + own.first + own.count));
  }

  // Each block lists its own spikes; of those of all blocks the workers of each tile select.
  void addBlocks(const Offered& offered) {
    const std::size_t groups = layer.sample_groups.size(), words = std::size_t{kShares} * (1 + 2 * list_.capacity);
    const unsigned columns = layer.tiles.columns;
    kept_ = graph.addVariable(UNSIGNED_INT, {layer.tiles.count, groups * words}, name("kept"));
    lists_ = addGroups(graph, UNSIGNED_INT, layer, name("lists"),
                       [&](unsigned samples) { return std::size_t{samples} * (1 + parts_.of_list); });
    forEachTile(*this, [&](const LayerTile& at) {
      graph.setTileMapping(at.ofGroup(kept_), at.tile());
      addVertex(graph, found_, "snnjax::ListBlock", at.tile(),
                {{"marks", at.ownRows(offered.marks)},
                 {"offered", at.ownRows(offered.rows)},
                 {"lists", lists_[at.group][at.block]},
                 {"iterations", iterations_.ofWorkers(at.tile(), kShares)}},
                {{"num_steps", plan.block_steps},
                 {"batch", at.samples()},
                 {"neurons", columns},
                 {"offered_stride", offeredStride(columns)},
                 {"slots", parts_.slots},
                 {"first_id", at.block * columns}});
    });
  }

  void addSamples() {
    sent_ = addStates(graph, plan, l, 1, name("sent"));
    for (std::size_t g = 0; g < layer.sample_groups.size(); ++g) {
      for (unsigned sample = 0; sample < layer.sample_groups[g].count; ++sample) addSample(g, sample);
    }
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
  Counter iterations_;                        // of the loop over a block's steps, of neurons and of lists
  PartsPlan parts_;
  Tensor sent_;  // [blocks, batch * columns]
  Tensor kept_;  // [blocks, groups * words]
  // Of the step before: of each sample, [lists * (1 + slots)], or of each group, [blocks, samples * words].
  std::vector<Tensor> lists_;
  std::vector<Tensor> too_many_;
  ComputeSet found_ = addSet("spikes"), joined_ = addSet("own_lists"), ranked_ = addSet("own_ranks"),
             merged_ = addSet("merged"), again_ = addSet("merged_ranks");
};

}  // namespace

bool addRecurrentForward(const LayerPass& of, const Tensor& current, const Offered& offered) {
  return RecurrentForward(of).add(current, offered);
}

}  // namespace snnjax::builders
