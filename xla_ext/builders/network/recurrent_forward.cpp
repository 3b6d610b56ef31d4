// Forward: neurons, and the lists of what they fire, in parts of their blocks, that the next step reads.
#include "builders/layout/layer_costs.hpp"
#include "builders/network/recurrent.hpp"

namespace snnjax::builders {
namespace {

class RecurrentForward {
 public:
  RecurrentForward(Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors, std::size_t l, Pass& pass)
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
    sent_ = addRows(FLOAT, columns, "sent");
    const auto add = [&](const char* set) { return graph_.addComputeSet(name(set)); };
    const ComputeSet neurons = add("neurons"), found = add("spikes"), joined = add("own_lists"),
                     ranked = add("own_ranks");
    for (std::size_t g = 0; g < layer_.sample_groups.size(); ++g) {
      for (unsigned sample = 0; sample < layer_.sample_groups[g].count; ++sample) {
        lists_.push_back(addSample(g, sample, found, joined, ranked));
      }
    }
    forEachTile(plan_, l_, [&](const LayerTile& at) { addNeurons(neurons, at, current, offered); });
    const unsigned tiles = layer_.tiles.count * static_cast<unsigned>(layer_.sample_groups.size());
    iteration_.advance(graph_, ranked, layer_.tiles.first, tiles, 1);
    pass_.before.add(addFirstSpikes(graph_, plan_, tensors_, l_));
    pass_.body.add(iteration_.reset());
    pass_.body.add(
        Repeat(plan_.block_steps, Sequence({Execute(neurons), Execute(found), Execute(joined), Execute(ranked)})));
  }

 private:
  std::string name(const std::string& what) const { return "forward/" + what + std::to_string(l_); }

  // [blocks, batch * columns], of each sample on the tiles of its group.
  Tensor addRows(const Type& type, std::size_t columns, const char* what) {
    const Tensor all = graph_.addVariable(type, {layer_.tiles.count, plan_.options.batch * columns}, name(what));
    forEachTile(plan_, l_, [&](const LayerTile& at) { graph_.setTileMapping(at.ownRows(all), at.tile()); });
    return all;
  }

  void addNeurons(ComputeSet set, const LayerTile& at, const Tensor& current, const Offered& offered) {
    const SampleGroup& own = layer_.sample_groups[at.group];
    const std::vector<Tensor> lists(lists_.begin() + own.first, lists_.begin() + own.first + own.count);
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

  // Of a sample, the lists of all parts: [parts, 1 + slots], on tiles of its group.
  Tensor addSample(std::size_t g, unsigned sample, ComputeSet found, ComputeSet joined, ComputeSet ranked) {
    const unsigned b = layer_.sample_groups[g].first + sample, columns = layer_.tiles.columns;
    const auto add = [&](const Type& type, std::size_t width, const char* what) {
      const Tensor parts = graph_.addVariable(type, {parts_.count, width}, name(what));
      for (unsigned part = 0; part < parts_.count; ++part) graph_.setTileMapping(parts[part], tileOf(g, sample, part));
      return parts;
    };
    const unsigned shared = ceilDivide(parts_.blocks * columns / 2, kWorkers) * 2;
    const Tensor rows = add(UNSIGNED_INT, 1 + parts_.slots, "rows"), membranes = add(FLOAT, parts_.slots, "membranes"),
                 lists = add(UNSIGNED_INT, 1 + parts_.slots, "lists"),
                 rows_found = add(UNSIGNED_INT, kWorkers * (1 + shared), "rows_found"),
                 found_membranes = add(FLOAT, kWorkers * shared, "membranes_found");
    for (unsigned part = 0; part < parts_.count; ++part) {
      const unsigned tile = tileOf(g, sample, part), first = part * parts_.blocks,
                     last = std::min(layer_.tiles.count, first + parts_.blocks);
      addVertex(graph_, found, "snnjax::ListSpikes", tile,
                {{"sent", sent_.slice(first, last).slice(b * columns, (b + 1) * columns, 1)},
                 {"rows", rows_found[part]},
                 {"membranes", found_membranes[part]}},
                {{"pairs", (last - first) * columns / 2},
                 {"first_id", first * columns},
                 {"columns", columns},
                 {"slots", shared}});
      addVertex(graph_, joined, "snnjax::JoinSpikes", tile,
                {{"rows", rows_found[part]},
                 {"membranes", found_membranes[part]},
                 {"joined_rows", rows[part]},
                 {"joined", membranes[part]}},
                {{"slots", shared}, {"capacity", parts_.slots}, {"columns", columns}});
      addVertex(graph_, ranked, "snnjax::RankSpikes", tile,
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
    const unsigned count = parts_.count * layer_.sample_groups[g].count,
                   index = part * layer_.sample_groups[g].count + sample;
    return layer_.tileOf(std::size_t{index} * layer_.tiles.count / count, g);
  }

  Graph& graph_;
  const NetworkPlan& plan_;
  const LayerPlan& layer_;
  const ListPlan& list_;
  const NetworkTensors& tensors_;
  std::size_t l_;
  Pass& pass_;
  Counter iteration_;  // of the loop over a block's steps
  PartsPlan parts_;
  Tensor sent_;                // [blocks, batch * columns]
  std::vector<Tensor> lists_;  // of each sample, of the step before: [parts * (1 + slots)]
};

}  // namespace

void addRecurrentForward(Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors, std::size_t l,
                         const Tensor& current, const Offered& offered, Pass& pass) {
  RecurrentForward(graph, plan, tensors, l, pass).add(current, offered);
}

}  // namespace snnjax::builders
