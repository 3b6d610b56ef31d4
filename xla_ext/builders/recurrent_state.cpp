#include "recurrent_state.hpp"

#include <algorithm>
#include <numeric>
#include <popops/Reduce.hpp>
#include <poputil/VertexTemplates.hpp>
#include <string>

#include "backward_constants.hpp"
#include "loop.hpp"
#include "vertices.hpp"

namespace snnjax::builders {
namespace {

using poplar::Tensor;
using poplar::UNSIGNED_SHORT;
using poplar::program::Copy;
using poplar::program::Execute;
using poplar::program::Sequence;
using poputil::templateVertex;

std::string nameInLoop(std::size_t l, const char* part) { return "layer" + std::to_string(l) + "/" + part; }

// Samples whose first spikes are read together: every tile receives all spikes of this many samples and returns as many
// dot products, batch after batch.
constexpr std::size_t kMostBytes = 32 * 1024;

struct Samples {
  std::size_t first, last;

  // Rows of a tensor [batch, ...], or of a tile's block [batch * columns].
  Tensor rowsOf(const Tensor& tensor) const { return tensor.slice(first, last); }
  Tensor blockOf(const Tensor& block, std::size_t columns) const {
    return block.slice(first * columns, last * columns);
  }
};

std::vector<Samples> inPieces(const NetworkPlan& plan, const LayerPlan& layer) {
  const std::size_t batch = plan.options.batch, row = layer.neurons * sizeof(float);
  const std::size_t each = std::max<std::size_t>(1, kMostBytes / row);
  std::vector<Samples> pieces;
  for (std::size_t first = 0; first < batch; first += each) pieces.push_back({first, std::min(first + each, batch)});
  return pieces;
}

// Reads first spikes as one list of all neurons, at a single step 0.
void addReader(poplar::Graph& graph, poplar::ComputeSet set, const LayerPlan& layer, unsigned i, Samples samples,
               const std::string& codelet, const LayerTensors& tensors, std::vector<Field> fields) {
  const unsigned tile = layer.tiles.first + i;
  const Tensor now = graph.addConstant(poplar::UNSIGNED_INT, {}, 0U, "first_step");
  graph.setTileMapping(now, tile);
  fields.insert(fields.end(), {{"lists", tensors.all_neurons[i]}, {"iteration", now}});
  addVertex(graph, set, codelet, tile, fields,
            {{"num_steps", 1U},
             {"delay", 0U},
             {"batch", static_cast<unsigned>(samples.last - samples.first)},
             {"stride", 0U},
             {"capacity", layer.neurons},
             {"num_inputs", layer.neurons},
             {"neurons", layer.tiles.columns}});
}

// Vertices at the homes, each with the records of all steps.
void addAtLastStep(poplar::Graph& graph, poplar::ComputeSet set, const NetworkPlan& plan, std::size_t l,
                   const NetworkTensors& tensors, const char* codelet, const char* field, const Tensor& rows,
                   const Tensor& listed) {
  const ListPlan& list = plan.lists[l + 1];
  for (const Home& home : list.homes) {
    std::vector<Field> fields = {{"list", historyOf(plan, list.stride, tensors.lists[l + 1].history, home)},
                                 {"lengths", rowsOf(tensors.lengths, home)},
                                 {field, rowsOf(rows, home)}};
    if (listed.valid()) fields.push_back({"g_listed", rowsOf(listed, home)});
    addVertex(graph, set, templateVertex(codelet, UNSIGNED_SHORT), home.tile, fields,
              {{"rows", home.samples},
               {"stride", list.stride},
               {"capacity", list.capacity},
               {"num_neurons", list.num_neurons},
               {"num_steps", plan.options.num_steps}});
  }
}

// Blocks [tiles, batch * columns] in the order of the neurons: [batch, neurons].
Tensor inOrder(const NetworkPlan& plan, const LayerPlan& layer, const Tensor& blocks) {
  const std::size_t batch = plan.options.batch;
  return blocks.reshape({layer.tiles.count, batch, layer.tiles.columns})
      .dimShuffle({1, 0, 2})
      .reshape({batch, layer.paddedNeurons()})
      .slice(0, layer.neurons, 1);
}

}  // namespace

Sequence fillRecords(poplar::Graph& graph, const LayerPlan& layer, unsigned count, const Tensor& records) {
  std::vector<std::uint16_t> record(records.dim(1), static_cast<std::uint16_t>(count));
  record[kListHeader - 1] = 0;
  std::iota(record.begin() + kListHeader, record.begin() + kListHeader + count, std::uint16_t{0});
  const Tensor one = graph.addConstant(UNSIGNED_SHORT, {record.size()}, poplar::ArrayRef<std::uint16_t>(record), "all");
  graph.setTileMapping(one, layer.tiles.first);
  return Sequence({Copy(one.expand({0}).broadcast(layer.tiles.count, 0), records)});
}

Sequence addFirstSpikes(poplar::Graph& graph, const NetworkPlan& plan, std::size_t l, const LayerTensors& tensors) {
  if (!plan.options.first_spikes) return Sequence({zeros(graph, {tensors.last_spikes}, nameInLoop(l, "no_spikes"))});
  const LayerPlan& layer = plan.layers[l];
  const std::size_t columns = layer.tiles.columns;
  const std::string codelet = templateVertex("snnjax::ValuedCurrent", weightsType(plan), UNSIGNED_SHORT);
  Sequence program(
      {fillRecords(graph, layer, layer.neurons, tensors.all_neurons), Copy(tensors.first_spikes, tensors.last_spikes)});
  for (const Samples& samples : inPieces(plan, layer)) {
    const poplar::ComputeSet set = graph.addComputeSet(nameInLoop(l, "first_current"));
    for (unsigned i = 0; i < layer.tiles.count; ++i) {
      addReader(graph, set, layer, i, samples, codelet, tensors,
                {{"values", samples.rowsOf(tensors.first_spikes)},
                 {"weights", tensors.recurrent[i]},
                 {"lengths", samples.rowsOf(tensors.lengths[i])},
                 {"current", samples.blockOf(tensors.first_current[i], columns)}});
    }
    program.add(Execute(set));
  }
  return program;
}

Sequence addLastSpikes(poplar::Graph& graph, const NetworkPlan& plan, std::size_t l, const NetworkTensors& tensors) {
  const poplar::ComputeSet set = graph.addComputeSet(nameInLoop(l, "last_spikes"));
  addAtLastStep(graph, set, plan, l, tensors, "snnjax::LastSpikes", "last", tensors.layers[l].last_spikes, {});
  return Sequence({Execute(set)});
}

Sequence addLastSpikesGradient(poplar::Graph& graph, const NetworkPlan& plan, std::size_t l,
                               const NetworkTensors& tensors, const LayerCotangents& cotangents) {
  const LayerPlan& layer = plan.layers[l];
  const std::size_t row = std::size_t{plan.options.batch} * layer.tiles.columns;
  const Tensor listed =
      addAtHomes(graph, poplar::FLOAT, plan.lists[l + 1].homes, layer.neurons, nameInLoop(l, "g_listed"));
  const Tensor g_spikes = addBlocks(graph, poplar::FLOAT, layer.tiles, row, nameInLoop(l, "g_last_spikes"));
  const ConstantsShare share = constantsShare(graph, plan, l, cotangents);
  const poplar::ComputeSet masked = graph.addComputeSet(nameInLoop(l, "last_spikes_gradient"));
  addAtLastStep(graph, masked, plan, l, tensors, "snnjax::LastSpikesGradient", "g", cotangents.g_last_spikes, listed);
  const poplar::ComputeSet through = graph.addComputeSet(nameInLoop(l, "last_gradient"));
  const LayerTensors& own = tensors.layers[l];
  const Tensor last = membraneRow(plan, l, own, plan.options.num_steps);
  const bool raises = layer.neuron.raises_threshold;
  for (unsigned i = 0; i < layer.tiles.count; ++i) {
    std::vector<Field> fields = {{"g_spikes", g_spikes[i]},
                                 {"threshold", own.threshold[i]},
                                 {"membranes", last[i]},
                                 {"g_last", cotangents.g_last[i]},
                                 {"g_threshold", share.g_threshold[i]}};
    if (raises) {
      fields.insert(fields.end(), {{"second", own.second[i]},
                                   {"w", secondRow(plan, l, own, plan.options.num_steps)[i]},
                                   {"g_last_w", cotangents.g_last_w[i]},
                                   {"g_coupling", share.g_coupling[i]}});
    }
    addVertex(graph, through, templateVertex("snnjax::LifLastGradient", raises), layer.tiles.first + i, fields,
              {{"batch", plan.options.batch},
               {"neurons", layer.tiles.columns},
               {"surrogate", static_cast<unsigned char>(layer.neuron.surrogate)},
               {"slope", layer.neuron.slope}});
  }
  return Sequence({Execute(masked), zeros(graph, {g_spikes}, nameInLoop(l, "zero_spare_columns")),
                   Copy(listed, inOrder(plan, layer, g_spikes)), Execute(through)});
}

Sequence addFirstSpikesGradient(poplar::Graph& graph, const NetworkPlan& plan, std::size_t l,
                                const LayerTensors& tensors, const Tensor& g_current,
                                const LayerCotangents& cotangents) {
  const LayerPlan& layer = plan.layers[l];
  const std::size_t neurons = layer.neurons, columns = layer.tiles.columns;
  const std::vector<Samples> pieces = inPieces(plan, layer);
  const bool is_wanted = cotangents.g_first_spikes.valid();
  const std::size_t num_dots = is_wanted ? pieces.front().last * neurons : 0;
  const Tensor dots = addBlocks(graph, poplar::FLOAT, layer.tiles, num_dots, nameInLoop(l, "dots"));
  const std::string of_spikes = templateVertex("snnjax::ListedDots", weightsType(plan), UNSIGNED_SHORT);
  const std::string of_weights = templateVertex("snnjax::ValuedRowsGradient", UNSIGNED_SHORT);
  Sequence program;
  for (const Samples& samples : pieces) {
    const poplar::ComputeSet set = graph.addComputeSet(nameInLoop(l, "first_spikes_gradient"));
    const Tensor own_dots = dots.slice(0, is_wanted ? (samples.last - samples.first) * neurons : 0, 1);
    for (unsigned i = 0; i < layer.tiles.count; ++i) {
      const Tensor g = samples.blockOf(g_current[i], columns);
      addReader(graph, set, layer, i, samples, of_weights, tensors,
                {{"values", samples.rowsOf(tensors.first_spikes)},
                 {"g_current", g},
                 {"g_weights", cotangents.g_recurrent[i]}});
      if (!is_wanted) continue;
      addReader(graph, set, layer, i, samples, of_spikes, tensors,
                {{"weights", tensors.recurrent[i]}, {"g_current", g}, {"dots", own_dots[i]}});
    }
    program.add(Execute(set));
    if (!is_wanted) continue;
    // Sequences without steps pass their gradient through.
    const Tensor& g_last = cotangents.g_last_spikes;
    popops::reduceWithOutput(
        graph, g_last.valid() ? poplar::concat(own_dots, samples.rowsOf(g_last).flatten().expand({0})) : own_dots,
        samples.rowsOf(cotangents.g_first_spikes).flatten(), {0}, popops::Operation::ADD, program,
        nameInLoop(l, "sum_first_dots"));
  }
  return program;
}

}  // namespace snnjax::builders
