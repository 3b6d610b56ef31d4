#include "builders/layout/network_plan.hpp"

#include <algorithm>

#include "builders/layout/placement.hpp"

namespace snnjax::builders {
namespace {

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
  NetworkPlan plan;
  plan.options = options;
  plan.num_tiles = num_tiles;
  plan.bytes_per_tile = bytes_per_tile;
  plan.lists = planLists(options);
  place(plan);
  return plan;
}

}  // namespace snnjax::builders
