// Backward: lists of all steps go to every tile first. In the loop the gradients of neurons, dot products with what
// they read, and the sums of these over blocks; weights follow for all steps at once.
#include <poputil/VertexTemplates.hpp>

#include "recurrent.hpp"
#include "scan_plan.hpp"

namespace snnjax::builders {
namespace {

using poplar::Tensor;
using poplar::UNSIGNED_SHORT;
using poplar::program::Copy;
using poplar::program::Execute;
using poplar::program::Repeat;
using poplar::program::Sequence;
using poputil::templateVertex;

class RecurrentBackward {
 public:
  RecurrentBackward(poplar::Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors,
                    const NetworkCotangents& cotangents, std::size_t l)
      : graph_(graph),
        plan_(plan),
        layer_(plan.layers[l]),
        list_(plan.lists[l + 1]),
        tensors_(tensors),
        cotangents_(cotangents),
        l_(l),
        iterations_(graph, plan, name("iteration")),
        constants_(graph, plan, tensors, l, name("constants")) {}

  Sequence program(const Tensor& g_spikes, const Tensor& g_current) {
    Sequence program({addLastSpikesGradientOfScan(graph_, plan_, tensors_, l_, cotangents_.layers[l_])});
    bringLists(program);
    const Tensor own_spikes = addScanRows(graph_, plan_, l_, layer_.tiles.columns, name("g_spikes"));
    program.add(Copy(g_spikes, own_spikes));
    addSlots(program);
    if (!tensors_.has_copies) program.add(copyRecurrent(tensors_.layers[l_]));
    program.add(constants_.program());
    program.add(iterations_.reset());
    const auto add = [&](const char* set) { return graph_.addComputeSet(name(set)); };
    const poplar::ComputeSet neurons = add("neurons"), dots = add("own_dots"), sums = add("own_sums");
    for (std::size_t g = 0; g < layer_.sample_groups.size(); ++g) addSums(g, sums);
    forEachTile(plan_, l_, [&](const ScanTile& at) {
      addNeurons(neurons, at, own_spikes, g_current);
      addDots(dots, at, g_current);
    });
    iterations_.advance(graph_, sums, layer_);
    program.add(Repeat(plan_.options.num_steps, Sequence({Execute(neurons), Execute(dots), Execute(sums)})));
    addWeights(program, g_current);
    program.add(addFirstSpikesGradientOfScan(graph_, plan_, tensors_, l_, cotangents_.layers[l_], g_current));
    return program;
  }

 private:
  std::string name(const std::string& what) const { return "backward/" + what + std::to_string(l_); }
  std::size_t steps() const { return plan_.options.num_steps; }

  // The lists that currents read, [blocks, samples * num_steps * stride] for each group: those of the step before.
  void bringLists(Sequence& program) {
    const std::size_t blocks = layer_.tiles.count, stride = list_.stride;
    const Tensor fired = tensors_.lists[l_ + 1].history.reshape({plan_.options.batch, steps(), stride});
    std::vector<Tensor> before_first;
    Sequence copies;
    for (std::size_t g = 0; g < layer_.sample_groups.size(); ++g) {
      const SampleGroup& own = layer_.sample_groups[g];
      const Tensor all = addGroup(graph_, UNSIGNED_SHORT, layer_, g, own.count * steps() * stride, name("lists"));
      const Tensor rows = all.reshape({blocks, own.count, steps(), stride});
      before_first.push_back(rows.slice(0, 1, 2));
      const Tensor from = fired.slice(own.first, own.first + own.count).slice(0, steps() - 1, 1).expand({0});
      if (steps() > 1) copies.add(Copy(from.broadcast(layer_.tiles.count, 0), rows.slice(1, steps(), 2)));
      lists_.push_back(all);
    }
    program.add(zeros(graph_, before_first, name("no_lists")));
    program.add(copies);
  }

  void addSlots(Sequence& program) {
    const unsigned columns = layer_.tiles.columns;
    const poplar::ComputeSet set = graph_.addComputeSet(name("slots"));
    for (std::size_t g = 0; g < layer_.sample_groups.size(); ++g) {
      const std::size_t rows = layer_.sample_groups[g].count * steps();
      slots_.push_back(addGroup(graph_, UNSIGNED_SHORT, layer_, g, rows * columns, name("slots")));
    }
    forEachTile(plan_, l_, [&](const ScanTile& at) {
      addVertex(graph_, set, "snnjax::SlotsOfNeurons", at.tile(),
                {{"lists", lists_[at.group][at.block]}, {"slots", slots_[at.group][at.block]}},
                {{"num_steps", plan_.options.num_steps},
                 {"batch", at.samples()},
                 {"stride", list_.stride},
                 {"capacity", list_.capacity},
                 {"first_id", at.block * columns},
                 {"neurons", columns}});
    });
    program.add(Execute(set));
  }

  // The dot products of a group [blocks, samples * capacity], and their sums [parts, samples * capacity].
  void addSums(std::size_t g, poplar::ComputeSet set) {
    const unsigned blocks = layer_.tiles.count, entries = layer_.sample_groups[g].count * list_.capacity;
    const SumsPlan sums = planSums(blocks, entries);
    dots_.push_back(addGroup(graph_, poplar::FLOAT, layer_, g, entries, name("dots")));
    sums_.push_back(graph_.addVariable(poplar::FLOAT, {sums.parts, entries}, name("sums")));
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

  void addNeurons(poplar::ComputeSet set, const ScanTile& at, const Tensor& g_spikes, const Tensor& g_current) {
    const Tensor& sums = sums_[at.group];
    std::vector<Field> fields = constants_.placed(at, gradientFields(at, tensors_, cotangents_, g_current));
    fields.insert(fields.end(), {{"g_spikes", at.ownRows(g_spikes)},
                                 {"slots", slots_[at.group][at.block]},
                                 {"sums", sums},
                                 {"iteration", iterations_.at(at.tile())}});
    std::vector<State> states = gradientStates(at);
    states.insert(states.end(), {{"parts", static_cast<unsigned>(sums.dim(0))}, {"capacity", list_.capacity}});
    addVertex(graph_, set,
              templateVertex("snnjax::LifRecurrentGradient", layer_.neuron.second_state, layer_.learns_constants),
              at.tile(), fields, states);
  }

  void addDots(poplar::ComputeSet set, const ScanTile& at, const Tensor& g_current) {
    addVertex(graph_, set, templateVertex("snnjax::StepDots", weightsType(plan_)), at.tile(),
              {{"lists", lists_[at.group][at.block]},
               {"weights", tensors_.layers[l_].copies[at.group][at.block]},
               {"g_current", at.ownRows(g_current)},
               {"dots", dots_[at.group][at.block]},
               {"iteration", iterations_.at(at.tile())}},
              {{"num_steps", plan_.options.num_steps},
               {"batch", at.samples()},
               {"stride", list_.stride},
               {"capacity", list_.capacity},
               {"num_inputs", layer_.neurons},
               {"neurons", layer_.tiles.columns}});
  }

  void addWeights(Sequence& program, const Tensor& g_current) {
    const RowsRead own = {.valued = false,
                          .fields =
                              [&](const ScanTile& at) {
                                return std::vector<Field>{{"lists", lists_[at.group][at.block]},
                                                          {"g_current", at.ownRows(g_current)}};
                              },
                          .states = [&](const ScanTile& at) { return rowStates(at, list_); }};
    std::vector<RowsRead> all = {own};
    if (plan_.options.first_spikes) all.push_back(readFirstSpikes(graph_, plan_, tensors_, l_, g_current));
    program.add(addWeightsGradient(graph_, plan_, l_, all, cotangents_.layers[l_].g_recurrent, "own_weights"));
  }

  poplar::Graph& graph_;
  const NetworkPlan& plan_;
  const LayerPlan& layer_;
  const ListPlan& list_;
  const NetworkTensors& tensors_;
  const NetworkCotangents& cotangents_;
  std::size_t l_;
  Iterations iterations_;
  ReadInLoop constants_;
  std::vector<Tensor> lists_, slots_, dots_, sums_;  // of each group
};

}  // namespace

Sequence addRecurrentBackward(poplar::Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors,
                              const NetworkCotangents& cotangents, std::size_t l, const Tensor& g_spikes,
                              const Tensor& g_current) {
  return RecurrentBackward(graph, plan, tensors, cotangents, l).program(g_spikes, g_current);
}

}  // namespace snnjax::builders
