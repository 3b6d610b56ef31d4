// Backward: lists of a block of steps go to every tile first. In the loop the gradients of neurons, dot products with
// what they read, and the sums of these over blocks of neurons; weights follow for all steps at once.

#include "builders/layout/layer_costs.hpp"
#include "builders/network/recurrent.hpp"

namespace snnjax::builders {
namespace {

class RecurrentBackward {
 public:
  RecurrentBackward(Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors,
                    const NetworkCotangents& cotangents, std::size_t l, Pass& pass)
      : graph_(graph),
        plan_(plan),
        layer_(plan.layers[l]),
        list_(plan.lists[l + 1]),
        tensors_(tensors),
        cotangents_(cotangents),
        l_(l),
        pass_(pass),
        iteration_(graph, plan.num_tiles, 0, name("iteration")) {}

  void add(const Tensor& g_spikes, const Tensor& g_current) {
    const LayerCotangents& own = cotangents_.layers[l_];
    pass_.before.add(addLastSpikesGradient(graph_, plan_, tensors_, l_, own));
    bringLists();
    const Tensor own_spikes = addRowsOf(graph_, plan_, l_, layer_.tiles.columns, name("g_spikes"));
    pass_.body.add(Copy(g_spikes, own_spikes));
    addSlots();
    pass_.body.add(iteration_.reset());
    const auto add = [&](const char* set) { return graph_.addComputeSet(name(set)); };
    const ComputeSet neurons = add("neurons"), dots = add("own_dots"), sums = add("own_sums");
    for (std::size_t g = 0; g < layer_.sample_groups.size(); ++g) addSums(g, sums);
    forEachTile(plan_, l_, [&](const LayerTile& at) {
      addNeurons(neurons, at, own_spikes, g_current);
      addDots(dots, at, g_current);
    });
    const unsigned tiles = layer_.tiles.count * static_cast<unsigned>(layer_.sample_groups.size());
    iteration_.advance(graph_, sums, layer_.tiles.first, tiles, 1);
    pass_.body.add(Repeat(plan_.block_steps, Sequence({Execute(neurons), Execute(dots), Execute(sums)})));
    addWeights(g_current);
    pass_.after.add(addFirstSpikesGradient(graph_, plan_, tensors_, l_, own, g_current));
  }

 private:
  std::string name(const std::string& what) const { return "backward/" + what + std::to_string(l_); }

  // The lists that currents read, [blocks, samples * block_steps * stride] for each group: those of the step before.
  void bringLists() {
    const std::size_t blocks = layer_.tiles.count, steps = plan_.block_steps, stride = list_.stride;
    const Tensor fired = tensors_.lists[l_ + 1].lists.reshape({plan_.options.batch, steps, stride});
    const Tensor last = lastOfBlockBefore();
    for (std::size_t g = 0; g < layer_.sample_groups.size(); ++g) {
      const SampleGroup& own = layer_.sample_groups[g];
      const Tensor all = addGroup(graph_, UNSIGNED_SHORT, layer_, g, own.count * steps * stride, name("lists"));
      const Tensor rows = all.reshape({blocks, own.count, steps, stride});
      const auto bring = [&](const Tensor& from, std::size_t first, std::size_t count) {
        const Tensor samples = from.slice(own.first, own.first + own.count).slice(0, count, 1).expand({0});
        if (count > 0)
          pass_.body.add(Copy(samples.broadcast(layer_.tiles.count, 0), rows.slice(first, first + count, 2)));
      };
      bring(fired, 1, steps - 1);
      if (last.valid()) {
        bring(last, 0, 1);
      } else {
        pass_.zeros.push_back(rows.slice(0, 1, 2));
      }
      lists_.push_back(all);
    }
  }

  // The lists of the step before a block, [batch, 1, stride] at the homes; not valid where it is always the first one.
  Tensor lastOfBlockBefore() {
    if (plan_.num_blocks == 1) return {};
    const std::size_t steps = plan_.block_steps;
    const Tensor rows = addAtHomes(graph_, UNSIGNED_SHORT, list_.homes, list_.stride, name("lists_before"));
    const ComputeSet set = graph_.addComputeSet(name("load_before"));
    for (const Home& home : list_.homes) {
      addLoadBlock(graph_, set, home.tile, historyOf(plan_, list_.stride, tensors_.lists[l_ + 1].history, home),
                   rowsOf(rows, home), pass_.block, 1);
    }
    pass_.body.add(Execute(set));
    return rows.reshape({plan_.options.batch, steps, list_.stride}).slice(steps - 1, steps, 1);
  }

  void addSlots() {
    const unsigned columns = layer_.tiles.columns;
    const ComputeSet set = pass_.addSet(graph_, "slots" + std::to_string(l_));
    for (std::size_t g = 0; g < layer_.sample_groups.size(); ++g) {
      const std::size_t rows = layer_.sample_groups[g].count * (plan_.block_steps + 1);
      slots_.push_back(addGroup(graph_, UNSIGNED_SHORT, layer_, g, rows * columns, name("slots")));
    }
    pass_.zeros.insert(pass_.zeros.end(), slots_.begin(), slots_.end());
    forEachTile(plan_, l_, [&](const LayerTile& at) {
      addVertex(graph_, set, "snnjax::SlotsOfNeurons", at.tile(),
                {{"lists", lists_[at.group][at.block]}, {"slots", slots_[at.group][at.block]}},
                {{"num_steps", plan_.block_steps},
                 {"batch", at.samples()},
                 {"stride", list_.stride},
                 {"capacity", list_.capacity},
                 {"first_id", at.block * columns},
                 {"neurons", columns}});
    });
  }

  // The dot products of a group [blocks, samples * capacity], and their sums [parts, samples * capacity].
  void addSums(std::size_t g, ComputeSet set) {
    const unsigned blocks = layer_.tiles.count, entries = layer_.sample_groups[g].count * list_.capacity;
    const SumsPlan sums = planSums(blocks, entries);
    dots_.push_back(addGroup(graph_, FLOAT, layer_, g, entries, name("dots")));
    sums_.push_back(graph_.addVariable(FLOAT, {sums.parts, entries}, name("sums")));
    pass_.zeros.push_back(sums_.back());  // no step follows the last one
    for (unsigned part = 0; part < sums.parts; ++part) {
      const unsigned first = part * blocks / sums.parts, last = (part + 1) * blocks / sums.parts;
      for (unsigned run = 0; run < sums.runs; ++run) {
        const unsigned from = run * sums.of_run, to = std::min(entries, from + sums.of_run);
        const unsigned index = part * sums.runs + run;
        const unsigned tile = layer_.tileOf(std::size_t{index} * blocks / (sums.parts * sums.runs), g);
        const Tensor out = sums_[g][part].slice(from, to);
        graph_.setTileMapping(out, tile);
        addVertex(graph_, set, "snnjax::SumRows", tile,
                  {{"in", dots_[g].slice(first, last).slice(from, to, 1)}, {"out", out}},
                  {{"rows", last - first}, {"columns", to - from}});
      }
    }
  }

  void addNeurons(ComputeSet set, const LayerTile& at, const Tensor& g_spikes, const Tensor& g_current) {
    const Tensor& sums = sums_[at.group];
    std::vector<Field> fields = gradientFields(at, tensors_, cotangents_, pass_.block, g_current);
    fields.insert(fields.end(), {{"g_spikes", at.ownRows(g_spikes)},
                                 {"slots", slots_[at.group][at.block]},
                                 {"sums", sums},
                                 {"iteration", iteration_.at(at.tile())}});
    std::vector<State> states = gradientStates(at);
    states.insert(states.end(), {{"parts", static_cast<unsigned>(sums.dim(0))}, {"capacity", list_.capacity}});
    addVertex(graph_, set,
              templateVertex("snnjax::LifRecurrentGradient", layer_.neuron.second_state, layer_.learns_constants),
              at.tile(), fields, states);
  }

  void addDots(ComputeSet set, const LayerTile& at, const Tensor& g_current) {
    addVertex(graph_, set, templateVertex("snnjax::StepDots", weightsType(plan_)), at.tile(),
              {{"lists", lists_[at.group][at.block]},
               {"weights", tensors_.layers[l_].recurrent_copies[at.group][at.block]},
               {"g_current", at.ownRows(g_current)},
               {"dots", dots_[at.group][at.block]},
               {"iteration", iteration_.at(at.tile())}},
              {{"num_steps", plan_.block_steps},
               {"batch", at.samples()},
               {"stride", list_.stride},
               {"capacity", list_.capacity},
               {"num_inputs", layer_.neurons},
               {"neurons", layer_.tiles.columns}});
  }

  void addWeights(const Tensor& g_current) {
    const Tensor& to = cotangents_.layers[l_].g_recurrent;
    if (layer_.gathers_recurrent) return addGatheredGradient(graph_, plan_, tensors_, l_, true, g_current, to, pass_);
    WeightsGradient weights(graph_, plan_, l_, to, "own_weights");
    const RowsRead own = {.valued = false,
                          .fields =
                              [&](const LayerTile& at) {
                                return std::vector<Field>{{"lists", lists_[at.group][at.block]},
                                                          {"g_current", at.ownRows(g_current)}};
                              },
                          .states = [&](const LayerTile& at) { return rowStates(at, list_); }};
    const std::vector<Tensor>& sums = weights.ofGroups();
    pass_.zeros.insert(pass_.zeros.end(), sums.begin(), sums.end());
    pass_.body.add(weights.add(own));
    if (plan_.options.first_spikes) {
      pass_.after.add(weights.add(readFirstSpikes(graph_, plan_, tensors_, l_, g_current)));
    }
    pass_.after.add(weights.sumGroups());
  }

  Graph& graph_;
  const NetworkPlan& plan_;
  const LayerPlan& layer_;
  const ListPlan& list_;
  const NetworkTensors& tensors_;
  const NetworkCotangents& cotangents_;
  std::size_t l_;
  Pass& pass_;
  Counter iteration_;                                // of the loop over a block's steps
  std::vector<Tensor> lists_, slots_, dots_, sums_;  // of each group
};

}  // namespace

void addRecurrentBackward(Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors,
                          const NetworkCotangents& cotangents, std::size_t l, const Tensor& g_spikes,
                          const Tensor& g_current, Pass& pass) {
  RecurrentBackward(graph, plan, tensors, cotangents, l, pass).add(g_spikes, g_current);
}

}  // namespace snnjax::builders
