#include "builders/layout/network_plan.hpp"

#include <algorithm>

#include "../../error.hpp"
#include "builders/layout/placement.hpp"

namespace snnjax::builders {
namespace {

void check(bool good, const std::string& argument, const std::string& expected, const std::string& actual,
           const std::string& hint) {
  if (good) return;
  throw Error(ErrorCode::kInvalidArgument,
              "lif_network: `" + argument + "` must " + expected + ", got " + actual + ". " + hint + ".");
}

void checkOptions(const NetworkOptions& options, unsigned num_tiles) {
  check(!options.layers.empty(), "layers", "hold at least one layer", "none", "Add one");
  check(options.num_steps > 0, "inputs", "hold at least one step", "none", "Pass a step");
  check(options.batch > 0, "inputs", "hold at least one sample", "batch 0", "Pass a batch");
  check(num_tiles > 0, "tiles", "be at least one", "0", "Choose a device with tiles");
  unsigned widest = options.num_inputs;
  for (const LayerOptions& layer : options.layers) {
    check(layer.neurons > 0, "layers", "have neurons", "a layer of 0", "Leave it out");
    widest = std::max(widest, layer.neurons);
  }
  check(!options.inputs_gradient || options.inputs != Inputs::Spikes, "inputs", "have values for a gradient",
        "spikes of value 1", "Pass them as events with values");
  check(widest < kMaxShortNeurons, "layers", "have at most 65534 neurons", std::to_string(widest), "Split the layer");
}

std::vector<ListPlan> planLists(const NetworkOptions& options) {
  std::vector<ListPlan> lists;
  const bool dense = options.inputs == Inputs::Dense;
  const unsigned slots = dense ? options.num_inputs : options.event_capacity;
  const unsigned used = dense || options.event_entries == 0 ? slots : options.event_entries;
  lists.push_back(
      {slots, listStride(slots), used, options.num_inputs, options.inputs != Inputs::Spikes, dense, {}, {}});
  for (std::size_t l = 0; l < options.layers.size(); ++l) {
    const LayerOptions& layer = options.layers[l];
    const bool is_output = options.outputs == 0 && l + 1 == options.layers.size();
    if (is_output && !layer.recurrent && !layer.capacity) break;
    const unsigned capacity = std::min(layer.capacity.value_or(layer.neurons), layer.neurons);
    lists.push_back({capacity, listStride(capacity), capacity, layer.neurons, false, false, {}, {}});
  }
  return lists;
}

}  // namespace

// For constants that learn, and wherever they raise the threshold.
bool NetworkPlan::keepsSecond(std::size_t layer) const {
  const NeuronOptions& neuron = options.layers[layer].neuron;
  const bool is_output = options.outputs == 0 && layer + 1 == options.layers.size();
  return (neuron.raises_threshold && (options.keeps_record || is_output)) ||
         (neuron.keeps_second && options.keeps_record);
}

NetworkPlan planNetwork(const NetworkOptions& options, unsigned num_tiles, std::size_t bytes_per_tile) {
  checkOptions(options, num_tiles);
  NetworkPlan plan;
  plan.options = options;
  plan.num_tiles = num_tiles;
  plan.bytes_per_tile = bytes_per_tile;
  plan.lists = planLists(options);
  place(plan);
  return plan;
}

}  // namespace snnjax::builders
