// Forward: neurons, bits of their spikes, and at the homes of the samples the lists that the next step reads.
#include <poputil/VertexTemplates.hpp>

#include "layer_costs.hpp"
#include "placement.hpp"
#include "recurrent.hpp"

namespace snnjax::builders {
namespace {

using poplar::Tensor;
using poplar::program::Copy;
using poplar::program::Execute;
using poplar::program::Repeat;
using poplar::program::Sequence;
using poputil::templateVertex;

constexpr unsigned kWordBits = 32;  // neurons whose spikes a word holds

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
        constants_(graph, plan, tensors, l, name("constants")),
        sends_membranes_(canOverflow(list_)),
        masks_(ceilDivide(layer_.tiles.columns, kWordBits)) {}

  void add(const Tensor& current, const Selectable& selectable) {
    const unsigned columns = layer_.tiles.columns, width = masks_ + (sends_membranes_ ? columns : 0);
    lists_ = addAtHomes(graph_, poplar::UNSIGNED_INT, list_.sample_homes, 1 + list_.capacity, name("lists"));
    spikes_ = addStatesOf(poplar::UNSIGNED_INT, columns / 2, "spikes");
    sent_ = addStatesOf(poplar::UNSIGNED_INT, width, "sent");
    const auto add = [&](const char* set) { return graph_.addComputeSet(name(set)); };
    const poplar::ComputeSet neurons = add("neurons"), pack = add("pack"), parts = add("spikes"),
                             lists = add("own_lists");
    forEachTile(plan_, l_, [&](const LayerTile& at) {
      addNeurons(neurons, at, current, selectable);
      addVertex(graph_, pack, "snnjax::PackSpikes", at.tile(),
                {{"spikes", at.ownRows(spikes_)}, {"sent", at.ownRows(sent_)}},
                {{"batch", at.samples()}, {"pairs", columns / 2}, {"masks", masks_}, {"width", width}});
    });
    for (const Home& home : list_.sample_homes) addHome(home, parts, lists);
    const unsigned tiles = layer_.tiles.count * static_cast<unsigned>(layer_.sample_groups.size());
    iteration_.advance(graph_, lists, layer_.tiles.first, tiles, 1);
    pass_.before.add(addFirstSpikes(graph_, plan_, tensors_, l_));
    pass_.before.add(constants_.program());
    pass_.body.add(iteration_.reset());
    pass_.body.add(
        Repeat(plan_.block_steps, Sequence({Execute(neurons), Execute(pack), Execute(parts), Execute(lists)})));
  }

 private:
  std::string name(const std::string& what) const { return "forward/" + what + std::to_string(l_); }

  // [blocks, batch * elements], of each sample on the tiles of its group.
  Tensor addStatesOf(const poplar::Type& type, std::size_t elements, const char* what) {
    const std::size_t batch = plan_.options.batch;
    const Tensor all = graph_.addVariable(type, {layer_.tiles.count, batch * elements}, name(what));
    forEachTile(plan_, l_, [&](const LayerTile& at) { graph_.setTileMapping(at.ownRows(all), at.tile()); });
    return all;
  }

  void addNeurons(poplar::ComputeSet set, const LayerTile& at, const Tensor& current, const Selectable& selectable) {
    std::vector<Field> fields = constants_.placed(at, neuronFields(at, tensors_, pass_.block, current, selectable));
    fields.insert(fields.end(), {{"lists", at.ofSamples(lists_)},
                                 {"weights", tensors_.layers[l_].recurrent_copies[at.group][at.block]},
                                 {"first", at.ownRows(tensors_.layers[l_].first_current)},
                                 {"iteration", iteration_.at(at.tile())},
                                 {"spikes", at.ownRows(spikes_)},
                                 {"sent", at.ownRows(sent_)}});
    std::vector<State> states = neuronStates(at);
    states.insert(states.end(),
                  {{"stride", 1 + list_.capacity}, {"masks", masks_}, {"sends_membranes", sends_membranes_}});
    addVertex(graph_, set, templateVertex("snnjax::LifRecurrentStep", weightsType(plan_), layer_.neuron.second_state),
              at.tile(), fields, states);
  }

  void addHome(const Home& home, poplar::ComputeSet parts, poplar::ComputeSet lists) {
    const unsigned blocks = layer_.tiles.count, columns = layer_.tiles.columns;
    const unsigned slots = ceilDivide(blocks, kWorkers) * columns;
    const auto add = [&](const poplar::Type& type, std::size_t elements, const char* what) {
      const Tensor tensor = graph_.addVariable(type, {elements}, name(what));
      graph_.setTileMapping(tensor, home.tile);
      return tensor;
    };
    const Tensor records = add(poplar::UNSIGNED_INT, kWorkers * (1 + slots), "parts");
    const Tensor membranes = add(poplar::FLOAT, sends_membranes_ ? kWorkers * slots : 0, "membranes");
    const std::size_t width = sent_.dim(1) / plan_.options.batch;
    addVertex(graph_, parts, "snnjax::ListSpikes", home.tile,
              {{"sent", sent_.slice(home.first * width, (home.first + 1) * width, 1)},
               {"parts", records},
               {"membranes", membranes}},
              {{"blocks", blocks},
               {"columns", columns},
               {"masks", masks_},
               {"slots", slots},
               {"sends_membranes", sends_membranes_}});
    addVertex(graph_, lists, "snnjax::JoinSpikes", home.tile,
              {{"parts", records}, {"membranes", membranes}, {"list", rowsOf(lists_, home)}},
              {{"slots", slots}, {"capacity", list_.capacity}, {"columns", columns}});
  }

  poplar::Graph& graph_;
  const NetworkPlan& plan_;
  const LayerPlan& layer_;
  const ListPlan& list_;
  const NetworkTensors& tensors_;
  std::size_t l_;
  Pass& pass_;
  Counter iteration_;  // of the loop over a block's steps
  ReadInLoop constants_;
  bool sends_membranes_;
  unsigned masks_;
  Tensor lists_;          // [batch, 1 + capacity], of the step before, at the homes of the samples
  Tensor spikes_, sent_;  // [blocks, batch * ...]
};

}  // namespace

ReadInLoop::ReadInLoop(poplar::Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors, std::size_t l,
                       const std::string& name) {
  const LayerPlan& layer = plan.layers[l];
  const LayerTensors& own = tensors.layers[l];
  const std::vector<std::pair<std::string, Tensor>> constants = {
      {"bias", own.bias},           {"decay", own.decay},   {"gain", own.gain},
      {"threshold", own.threshold}, {"second", own.second}, {"second_threshold", own.second_threshold}};
  for (std::size_t g = 0; g < layer.sample_groups.size(); ++g) {
    const SampleGroup& samples = layer.sample_groups[g];
    const auto add = [&](const std::string& field, const Tensor& from) {
      const Tensor here = addGroup(graph, from.elementType(), layer, g, from.dim(1), name + "/" + field);
      of_groups_[field].push_back(here);
      program_.add(Copy(from, here));
    };
    for (const auto& [field, from] : constants) {
      if (from.valid()) add(field, from);
    }
    const Tensor ends = tensors.lengths.slice(samples.first, samples.first + samples.count).expand({0});
    add("lengths", ends.broadcast(layer.tiles.count, 0));
  }
}

std::vector<Field> ReadInLoop::placed(const LayerTile& at, std::vector<Field> fields) const {
  for (Field& field : fields) {
    const auto found = of_groups_.find(field.name);
    if (found != of_groups_.end()) field.tensor = found->second[at.group][at.block];
  }
  return fields;
}

void addRecurrentForward(poplar::Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors, std::size_t l,
                         const Tensor& current, const Selectable& selectable, Pass& pass) {
  RecurrentForward(graph, plan, tensors, l, pass).add(current, selectable);
}

}  // namespace snnjax::builders
