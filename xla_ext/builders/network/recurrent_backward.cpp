// Backward: lists of a block of steps go to every tile first. In the loop the gradients of neurons, dot products with
// what they read, and the sums of these over blocks of neurons; weights follow for all steps at once.

#include "builders/layout/layer_costs.hpp"
#include "builders/network/recurrent.hpp"

namespace snnjax::builders {
namespace {

class RecurrentBackward : LayerPass {
 public:
  explicit RecurrentBackward(const LayerPass& of)
      : LayerPass(of), iterations_(graph, plan.num_tiles, 0, name("iterations"), 2 * kShares) {}

  void add(const Tensor& g_spikes, const Tensor& g_current) {
    pass.before.add(addLastSpikesGradient(*this));
    bringLists();
    const Tensor own_spikes = addRows(layer.tiles.columns, name("g_spikes"));
    pass.body.add(Copy(g_spikes, own_spikes));
    addSlots();
    pass.body.add(iterations_.reset());
    const auto add = [&](const char* set) { return graph.addComputeSet(name(set)); };
    const ComputeSet neurons = add("neurons"), dots = add("own_dots"), sums = add("own_sums");
    bool are_summed = false;
    for (std::size_t g = 0; g < layer.sample_groups.size(); ++g) are_summed |= addSums(g, sums);
    forEachTile(*this, [&](const LayerTile& at) {
      addNeurons(neurons, at, own_spikes, g_current);
      addDots(dots, at, g_current);
    });
    Sequence step({Execute(neurons), Execute(dots)});
    if (are_summed) step.add(Execute(sums));
    pass.body.add(Repeat(plan.block_steps, step));
    addWeights(g_current);
    pass.after.add(addFirstSpikesGradient(*this, g_current));
  }

 private:
  // The lists that currents read, [blocks, samples * block_steps * stride] for each group: those of the step before.
  void bringLists() {
    const std::size_t blocks = layer.tiles.count, steps = plan.block_steps, stride = list_.stride;
    const Tensor fired = pass.tensors.lists[l + 1].lists.reshape({plan.options.batch, steps, stride});
    const Tensor last = lastOfBlockBefore();
    for (std::size_t g = 0; g < layer.sample_groups.size(); ++g) {
      const SampleGroup& own = layer.sample_groups[g];
      const Tensor all = addGroup(graph, UNSIGNED_SHORT, layer, g, own.count * steps * stride, name("lists"));
      const Tensor rows = all.reshape({blocks, own.count, steps, stride});
      const auto bring = [&](const Tensor& from, std::size_t first, std::size_t count) {
        const Tensor samples = from.slice(own.first, own.first + own.count).slice(0, count, 1).expand({0});
        if (count > 0)
          pass.body.add(Copy(samples.broadcast(layer.tiles.count, 0), rows.slice(first, first + count, 2)));
      };
      bring(fired, 1, steps - 1);
      if (last.valid()) {
        bring(last, 0, 1);
      } else {
        pass.zeros.push_back(rows.slice(0, 1, 2));
      }
      lists_.push_back(all);
    }
  }

  // The lists of the step before a block, [batch, 1, stride] at the homes; not valid where it is always the first one.
  Tensor lastOfBlockBefore() {
    if (plan.num_blocks == 1) return {};
    const std::size_t steps = plan.block_steps;
    const Tensor rows = addAtHomes(graph, UNSIGNED_SHORT, list_.homes, list_.stride, name("lists_before"));
    const ComputeSet set = graph.addComputeSet(name("load_before"));
    for (const Home& home : list_.homes) {
      addLoadBlock(pass, set, home.tile, historyOf(plan, list_.stride, pass.tensors.lists[l + 1].history, home),
                   rowsOf(rows, home), 1);
    }
    pass.body.add(Execute(set));
    return rows.reshape({plan.options.batch, steps, list_.stride}).slice(steps - 1, steps, 1);
  }

  void addSlots() {
    const unsigned columns = layer.tiles.columns, of_share = neuronsOfShare(layer.neurons);
    const auto shareOf = [=](unsigned neuron) { return std::min(neuron / of_share, kShares - 1); };
    const ComputeSet set = addSet("slots");
    const std::size_t steps = plan.block_steps + std::size_t{1}, of_sample = steps * columns;
    slots_ =
        addGroups(graph, UNSIGNED_SHORT, layer, name("slots"), [=](unsigned samples) { return samples * of_sample; });
    for (const Tensor& own : slots_) {
      pass.zeros.push_back(own.reshape({own.dim(0), own.dim(1) / of_sample, steps, columns}).slice(0, 1, 2));
    }
    forEachTile(*this, [&](const LayerTile& at) {
      addVertex(graph, set, "snnjax::SlotsOfNeurons", at.tile(),
                {{"lists", lists_[at.group][at.block]}, {"slots", slots_[at.group][at.block]}},
                {{"num_steps", plan.block_steps},
                 {"batch", at.samples()},
                 {"stride", list_.stride},
                 {"capacity", list_.capacity},
                 {"first_id", at.block * columns},
                 {"neurons", columns},
                 {"first_share", shareOf(at.block * columns)},
                 {"last_share", shareOf((at.block + 1) * columns - 1)}});
    });
  }

  // The dot products of a group [blocks, samples * capacity], and their sums [parts, samples * capacity], with one more
  // where these are odd. Whether sums take vertices.
  bool addSums(std::size_t g, ComputeSet set) {
    const unsigned blocks = layer.tiles.count,
                   entries = (layer.sample_groups[g].count * list_.capacity + 1) / 2 * 2;  // summed in pairs
    const SumsPlan sums = planSums(blocks, entries);
    dots_.push_back(addGroup(graph, FLOAT, layer, g, entries, name("dots")));
    const bool are_dots = sums.parts == blocks;
    sums_.push_back(are_dots ? dots_.back() : graph.addVariable(FLOAT, {sums.parts, entries}, name("sums")));
    pass.zeros.push_back(sums_.back());  // no step follows the last one
    if (are_dots) return false;
    for (unsigned part = 0; part < sums.parts; ++part) {
      const unsigned first = part * blocks / sums.parts, last = (part + 1) * blocks / sums.parts;
      for (unsigned run = 0; run < sums.runs; ++run) {
        const unsigned from = run * sums.of_run, to = std::min(entries, from + sums.of_run);
        const unsigned index = part * sums.runs + run;
        const unsigned tile = layer.tileOf(std::size_t{index} * blocks / (sums.parts * sums.runs), g);
        const Tensor out = sums_[g][part].slice(from, to);
        graph.setTileMapping(out, tile);
        addVertex(graph, set, "snnjax::SumRows", tile,
                  {{"in", dots_[g].slice(first, last).slice(from, to, 1)}, {"out", out}},
                  {{"rows", last - first}, {"columns", to - from}});
      }
    }
    return true;
  }

  void addNeurons(ComputeSet set, const LayerTile& at, const Tensor& g_spikes, const Tensor& g_current) {
    const Tensor sums = sums_[at.group].slice(0, std::size_t{at.samples()} * list_.capacity, 1);
    const std::vector<Field> fields =
        with(gradientFields(at, g_current), {{"g_spikes", at.ownRows(g_spikes)},
                                             {"slots", slots_[at.group][at.block]},
                                             {"sums", sums},
                                             {"iterations", iterations_.ofWorkers(at.tile(), 0)}});
    addVertex(graph, set,
              templateVertex("snnjax::LifRecurrentGradient", layer.neuron.second_state, layer.learns_constants),
              at.tile(), fields,
              with(gradientStates(at), {{"parts", static_cast<unsigned>(sums.dim(0))}, {"capacity", list_.capacity}}));
  }

  void addDots(ComputeSet set, const LayerTile& at, const Tensor& g_current) {
    addVertex(graph, set, templateVertex("snnjax::StepDots", weightsType(plan)), at.tile(),
              {{"lists", lists_[at.group][at.block]},
               {"weights", tensors.recurrent_copies[at.group][at.block]},
               {"g_current", at.ownRows(g_current)},
               {"dots", dots_[at.group][at.block]},
               {"iterations", iterations_.ofWorkers(at.tile(), kShares)}},
              {{"num_steps", plan.block_steps},
               {"batch", at.samples()},
               {"stride", list_.stride},
               {"capacity", list_.capacity},
               {"num_inputs", layer.neurons},
               {"neurons", layer.tiles.columns}});
  }

  void addWeights(const Tensor& g_current) {
    const Tensor& to = cotangents().g_recurrent;
    if (layer.gathers_recurrent) return addGatheredGradient(*this, true, g_current, to);
    const WeightsGradient weights(*this, to, "own_weights");
    const auto fields = [&](const LayerTile& at) -> std::vector<Field> {
      return {{"lists", lists_[at.group][at.block]}, {"g_current", at.ownRows(g_current)}};
    };
    pass.body.add(weights.add(false, fields, [&](const LayerTile& at) { return rowStates(at, list_); }));
    if (plan.options.first_spikes) pass.after.add(addFirstSpikesWeights(*this, weights, g_current));
    pass.after.add(weights.sumGroups());
  }

  const ListPlan& list_ = plan.lists[l + 1];         // that it fires
  Counter iterations_;                               // of the loop over a block's steps, of neurons and of dots
  std::vector<Tensor> lists_, slots_, dots_, sums_;  // of each group
};

}  // namespace

void addRecurrentBackward(const LayerPass& of, const Tensor& g_spikes, const Tensor& g_current) {
  RecurrentBackward(of).add(g_spikes, g_current);
}

}  // namespace snnjax::builders
