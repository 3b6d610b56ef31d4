// Sources: jrfinkbeiner/graphcore_snn, custom_lif_multi_layer/custom_lif_layer_vectorize_transpose at 73924cd and
// afd6c70: poplar_code_stateBasedReset.cpp, poplar_functions.cpp, custom_codelet.cpp. What each phase moves follows
// from the tile mappings there. Issue slots are counted by one rule, that of tutorial 6's dot product (4 an element):
// every load, store, integer operation and branch of the C++ loop is one slot, and a float operation goes with the
// branch beside it.
#include "calibration/published_step.hpp"

#include <algorithm>
#include <cmath>

#include "calibration/phases.hpp"

namespace ipu_model::calibration {
namespace {

using Loads = std::vector<Phases::Load>;
using Kinds = std::vector<Phases::Vertices>;

constexpr double kTiles = 1471;  // tile 0 is left out
constexpr double kNeurons = 2;   // on each tile
constexpr double kWorkers = 6;
constexpr double kSliceableRun = 2;      // words a tile of a popops::createSliceTensor: 8 bytes
constexpr double kLinearRun = 32;        // words a tile of a poputil linear mapping at least: 128 bytes
constexpr double kStatesPerWorker = 64;  // of dense_to_sparse_spikes
constexpr double kReduceGroup = 24;      // tiles that one vertex of the first reduction sums over: half the batch

// PopLibs 3.4.0 estimators (ipu.md 3.5), in issue slots of each worker.
double dynamicSliceSlots(double words) { return 39 + 24 + 2 * std::ceil(words / 2 / kWorkers); }
double broadcastSlots(double words) { return 20 + 2 * std::ceil(words / 2 / kWorkers); }
constexpr double kDynamicSupervisor = 25;

struct Layer {
  double inputs, neurons, tiles, capacity_in, capacity_out, spikes_in, spikes_out;
  bool first;
  // Tiles over which the list of one step of the inputs is spread, in runs of so many words.
  [[nodiscard]] double runsIn(double words) const {
    return std::min(kTiles, std::ceil(words / (first ? kSliceableRun : kLinearRun)));
  }
};

struct Step {
  const Chip& chip;
  std::vector<Layer> layers;
  double batch;
  double fill;

  // One dynamicSlice or dynamicUpdate of `words` a tile: the index goes to every tile, then a copy.
  void dynamic(Phases& phases, double words) const {
    phases.exchange({{.sent = 1, .sent_in = 1, .received = 1, .received_in = 1}});
    phases.multi(dynamicSliceSlots(words), kDynamicSupervisor);
  }
  void broadcastMultiply(Phases& phases) const { phases.multi(broadcastSlots(kNeurons * batch)); }

  // performBatchedLIFStateUpdateInPlace: a vertex a sample; ids of the own layer's inputs come to every tile.
  void stateUpdate(Phases& phases) const {
    Loads loads;
    Kinds kinds;
    for (const Layer& layer : layers) {
      const double words = batch * layer.capacity_in;
      loads.push_back({.received = words + batch, .received_in = layer.runsIn(words) + layer.runsIn(batch)});
      kinds.push_back({batch, 34 + 4 * layer.spikes_in});
    }
    phases.exchange(loads);
    phases.compute(kinds);
  }

  // gen_dense_spikes (a vertex a neuron and sample), poprand::uniform a layer, dense_to_sparse_spikes on several tiles
  // a sample and threshold, two combinations.
  void selectSpikes(Phases& phases) const {
    phases.compute({{kNeurons * batch, 15}});
    constexpr double kThresholds = 2;
    Loads dense, lists;
    Kinds find, join, combine;
    for (const Layer& layer : layers) {
      phases.multi(4 + 22);
      const double workers = std::max(1.0, std::round(layer.neurons / kStatesPerWorker));
      const double spread = std::max(1.0, std::round(workers / kWorkers));
      const double states = layer.neurons / spread;
      const double part = std::min(layer.capacity_out, states);
      const double each = kNeurons * batch * kThresholds;
      dense.push_back({.sent = each, .sent_in = each, .received = states, .received_in = states});
      find.push_back({kWorkers, 20 + 4 * states / kWorkers + 3 * fill * part / kWorkers});
      join.push_back({1, 15 + 8 * kWorkers + 3 * fill * part / 2});
      const double runs = spread * kThresholds;
      lists.push_back({.sent = part, .sent_in = 1, .received = runs * part, .received_in = runs});
      combine.push_back({1, 25 + 8 * runs + 3 * fill * layer.capacity_out});
    }
    phases.exchange(dense);
    phases.compute(find);
    phases.compute(join);
    phases.exchange(lists);
    phases.compute(combine);
  }

  [[nodiscard]] double forward() const {
    Phases phases(chip);
    phases.multi(20);  // the loop's counter
    dynamic(phases, kSliceableRun);
    dynamic(phases, kSliceableRun);
    phases.exchange(
        {{.sent = kSliceableRun, .sent_in = 1, .received = kLinearRun, .received_in = kLinearRun / kSliceableRun}});
    stateUpdate(phases);
    selectSpikes(phases);
    for (const Layer& layer : layers) {
      dynamic(phases, kNeurons * batch);
      dynamic(phases, std::ceil(batch * layer.capacity_out / kTiles));
      dynamic(phases, kSliceableRun);
    }
    return phases.cycles();
  }

  // calcLIFStateGrad_stateWise: every tile searches the whole list of its layer for its own neurons.
  void stateGradient(Phases& phases) const {
    Loads loads;
    Kinds kinds;
    for (const Layer& layer : layers) {
      broadcastMultiply(phases);
      const double words = batch * layer.capacity_out;
      const double runs = std::min(kTiles, words / kSliceableRun) + std::min(kTiles, std::ceil(words / kLinearRun));
      loads.push_back({.received = 2 * words + batch, .received_in = runs + batch / kSliceableRun});
      kinds.push_back({batch, 14 + 5 * layer.spikes_out});
    }
    phases.exchange(loads);
    phases.compute(kinds);
  }

  // Lists of the inputs, copied to every tile of the layer; then calcLIFWeightGrad, six vertices of a sixth of the
  // batch.
  void weightGradient(Phases& phases) const {
    Loads loads;
    Kinds kinds;
    for (const Layer& layer : layers) {
      const double words = batch * layer.capacity_in;
      const double runs = std::min(kTiles, words / kSliceableRun) + batch;
      loads.push_back({.received = words + 2 * batch, .received_in = runs});
      kinds.push_back({kWorkers, 14 + batch / kWorkers * (6 + 6 * layer.spikes_in)});
    }
    phases.exchange(loads);
    phases.compute(kinds);
  }

  // calcLIFInpSpikesGradRowWise: a partial sum a tile, sample and slot; summed over groups of tiles, then over the
  // groups.
  void spikeGradient(Phases& phases) const {
    Kinds partial;
    Loads loads;
    double sums = 0, sums_received = 0, groups = 1;
    for (const Layer& layer : layers) {
      if (layer.first) continue;
      partial.push_back({batch, 14 + 7 * layer.spikes_in});
      const double group = std::min(kReduceGroup, layer.tiles);
      groups = std::max(groups, std::floor(layer.tiles / group));
      sums += std::floor(layer.tiles / group) * batch * layer.capacity_in;
      sums_received += layer.tiles * batch * layer.capacity_in;
      loads.push_back({.sent = batch * layer.capacity_in, .sent_in = batch * layer.capacity_in});
    }
    phases.compute(partial);
    for (Phases::Load& load : loads) load.received = load.received_in = sums_received / kTiles;
    phases.exchange(loads);
    phases.compute({{sums / kTiles, 12 + fill * 2 * kReduceGroup}});
    // popops::reduceMany over the groups: each tile sums its share, 8 bytes at a time.
    const double share = sums / kTiles;
    phases.exchange({{.sent = share, .sent_in = share, .received = share, .received_in = share}});
    phases.multi(53 + std::ceil(share / 2 / kWorkers) * 3 + groups);
  }

  [[nodiscard]] double backward() const {
    Phases phases(chip);
    phases.multi(20);  // the two counters
    phases.multi(20);
    const double lists = 3 + 2 * (static_cast<double>(layers.size()) - 1);
    for (double i = 0; i < lists; ++i) dynamic(phases, kSliceableRun);
    for (const Layer& layer : layers) {
      dynamic(phases, std::ceil(batch * layer.capacity_out / kTiles));
      dynamic(phases, kSliceableRun);
      dynamic(phases, kNeurons * batch);
    }
    stateGradient(phases);
    for (std::size_t i = 0; i < layers.size(); ++i) {  // performSharedUpdate: a copy on the tile, and a product
      phases.add(static_cast<double>(tileCopyCycles(chip, static_cast<std::uint64_t>(kNeurons * batch * 4), 1)));
      broadcastMultiply(phases);
    }
    weightGradient(phases);
    spikeGradient(phases);
    return phases.cycles();
  }

  // Adam in about eight passes of loads and stores, a root and a quotient; six weight gradients are zeroed and summed.
  [[nodiscard]] double once(double steps) const {
    double weights = 0;
    for (const Layer& layer : layers) weights = std::max(weights, layer.inputs * kNeurons);
    const double pairs = weights / 2 / kWorkers;
    Phases phases(chip);
    phases.multi(pairs * (8 * 3 + 10 + 10));
    phases.multi(kWorkers * pairs);
    phases.multi(kWorkers * pairs * 2);
    constexpr std::uint64_t kRequests = 1;  // ids, numbers, targets
    const double bytes = 4 * batch * (steps * (layers.front().capacity_in + 1) + 1);
    phases.add(static_cast<double>(hostCycles(chip, static_cast<std::uint64_t>(bytes), kRequests)));
    return phases.cycles();
  }
};

}  // namespace

StepCycles publishedStep(const Chip& chip, const PublishedNetwork& network, double fill) {
  Step step{chip, {}, static_cast<double>(network.batch), fill};
  for (std::size_t i = 0; i + 1 < network.neurons.size(); ++i) {
    const double in = network.capacities[i], out = network.capacities[i + 1], neurons = network.neurons[i + 1];
    // The input lists are full, whatever the activity within the network.
    step.layers.push_back({static_cast<double>(network.neurons[i]), neurons, std::ceil(neurons / kNeurons), in, out,
                           i == 0 ? in : fill * in, fill * out, i == 0});
  }
  StepCycles cycles{step.forward(), step.backward(), step.once(network.steps), 0};
  cycles.total = network.steps * (cycles.forward + cycles.backward) + cycles.once;
  return cycles;
}

}  // namespace ipu_model::calibration
