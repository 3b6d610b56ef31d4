#include "network_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../error.hpp"
#include "scan_plan.hpp"
#include "tree_estimate.hpp"

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
  lists.push_back({slots, listStride(slots), options.num_inputs, options.inputs != Inputs::Spikes, dense, {}, {}});
  for (std::size_t l = 0; l < options.layers.size(); ++l) {
    const LayerOptions& layer = options.layers[l];
    const bool is_output = options.outputs == 0 && l + 1 == options.layers.size();
    if (is_output && !layer.recurrent) break;
    // A spiking output is fully listed.
    const unsigned capacity =
        is_output ? layer.neurons : std::min(layer.capacity.value_or(layer.neurons), layer.neurons);
    lists.push_back({capacity, listStride(capacity), layer.neurons, false, false, {}, {}});
  }
  return lists;
}

// Second states are kept for constants that learn, and wherever they raise the threshold.
bool keepsSecondStates(const NetworkOptions& options, std::size_t l) {
  const NeuronOptions& neuron = options.layers[l].neuron;
  const bool is_output = options.outputs == 0 && l + 1 == options.layers.size();
  return (neuron.raises_threshold && (options.keeps_record || is_output)) ||
         (neuron.keeps_second && options.keeps_record);
}

unsigned rowsOfSecondStates(const NetworkOptions& options, std::size_t l) {
  if (l >= options.layers.size() || !options.layers[l].neuron.second_state) return 0;
  return keepsSecondStates(options, l) ? options.num_steps + 1 : 1;
}

std::vector<LayerPlan> planLayers(const NetworkPlan& plan, std::size_t bytes_per_tile) {
  const NetworkOptions& options = plan.options;
  std::vector<LayerSize> sizes;
  const std::size_t count = options.layers.size() + (options.outputs > 0 ? 1 : 0);
  for (std::size_t l = 0; l < count; ++l) {
    const unsigned neurons = l < options.layers.size() ? options.layers[l].neurons : options.outputs;
    const bool recurrent = l < options.layers.size() && options.layers[l].recurrent;
    sizes.push_back({plan.lists[l].num_neurons + (recurrent ? neurons + 1 : 0), neurons,
                     plan.lists[l].capacity + (recurrent ? plan.lists[l + 1].capacity : 0),
                     rowsOfSecondStates(options, l)});
  }
  const TilesAtHand tiles{plan.num_tiles,
                          bytes_per_tile,
                          options.batch,
                          options.keeps_record ? options.num_steps + 1 : 1,
                          options.keeps_record ? 2U : 1U,
                          options.half_weights ? 2U : 4U};
  const std::vector<TileRange> ranges = tilesOfLayers(sizes, tiles);
  std::vector<LayerPlan> layers;
  for (std::size_t l = 0; l < count; ++l) {
    LayerPlan layer;
    layer.leaky = l == options.layers.size();
    layer.recurrent = !layer.leaky && options.layers[l].recurrent;
    layer.learns_constants = options.learns_constants;
    if (!layer.leaky) layer.neuron = options.layers[l].neuron;
    layer.sums_apart = layer.recurrent || plan.lists[l].valued;
    layer.inputs = plan.lists[l].num_neurons;
    layer.neurons = sizes[l].neurons;
    layer.tiles = ranges[l];
    layers.push_back(std::move(layer));
  }
  return layers;
}

// Groups of at most `group_tiles`, nearly equal in size, so that each can lead another; larger ones first.
std::vector<TileGroup> groupsOf(unsigned tiles, unsigned group_tiles) {
  const unsigned count = (tiles + group_tiles - 1) / group_tiles;
  std::vector<TileGroup> groups;
  for (unsigned first = 0; groups.size() < count; first += groups.back().count) {
    groups.push_back({first, tiles / count + (groups.size() < tiles % count ? 1 : 0)});
  }
  return groups;
}

// Groups and number of homes with the fewest cycles, over all layers together.
void chooseTrees(NetworkPlan& plan) {
  const unsigned batch = plan.options.batch;
  double least = std::numeric_limits<double>::infinity();
  std::vector<TreeChoice> best;
  unsigned best_homes = 1;
  for (unsigned homes = 1; homes <= std::min(batch, plan.num_tiles); ++homes) {
    double total = 0;
    std::vector<TreeChoice> choices;
    for (std::size_t l = 0; l < plan.layers.size(); ++l) {
      choices.push_back(cheapestTree(plan, l, homes));
      total += choices.back().cycles;
    }
    if (total < least) {
      least = total;
      best = choices;
      best_homes = homes;
    }
  }
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    plan.layers[l].groups = groupsOf(plan.layers[l].tiles.count, best[l].group_tiles);
    plan.layers[l].parts = best[l].parts;
  }
  for (ListPlan& list : plan.lists) {
    const unsigned each = (batch + best_homes - 1) / best_homes;
    for (unsigned first = 0; first < batch; first += each) {
      list.homes.push_back({0, first, std::min(each, batch - first)});
    }
  }
}

// Homes go on tiles without neurons first, then on those of the layer with the least work.
void placeHomes(NetworkPlan& plan) {
  unsigned used = 0;
  for (const LayerPlan& layer : plan.layers) used = std::max(used, layer.tiles.first + layer.tiles.count);
  std::size_t calm = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    const LayerPlan& layer = plan.layers[l];
    const double cost = stepCost({layer.inputs, layer.neurons, plan.lists[l].capacity}, layer.tiles.columns, 1) +
                        1e6 / layer.tiles.count;  // a layer of few tiles would have to take many homes on each
    if (cost < least) {
      least = cost;
      calm = l;
    }
  }
  std::vector<unsigned> tiles;
  for (unsigned tile = used; tile < plan.num_tiles; ++tile) tiles.push_back(tile);
  const TileRange& range = plan.layers[calm].tiles;
  for (unsigned tile = 0; tile < range.count; ++tile) tiles.push_back(range.first + tile);
  std::size_t next = 0;
  for (ListPlan& list : plan.lists) {
    for (Home& home : list.homes) home.tile = tiles[next++ % tiles.size()];
  }
}

// With a recurrent layer a step passes through all stages in one iteration. A layer runs one iteration behind the layer
// below, or two if the sum of what it reads takes one of its own.
void setRecurrentDelays(NetworkPlan& plan) {
  const auto lists = static_cast<unsigned>(plan.lists.size());
  for (unsigned l = 0; l < plan.layers.size(); ++l) {
    LayerPlan& layer = plan.layers[l];
    layer.delay = l == 0 ? 1 : plan.layers[l - 1].delay + (layer.sums_apart ? 2 : 1);
    layer.backward_delay = lists - l;
  }
  plan.iterations = plan.options.num_steps + plan.layers.back().delay + (plan.layers.back().recurrent ? 1 : 0);
  plan.backward_iterations = plan.options.num_steps + plan.layers.front().backward_delay;
}

// Else a layer runs two iterations behind the layer below: see the pictures in README.md.
void setDelays(NetworkPlan& plan) {
  if (plan.isRecurrent()) return setRecurrentDelays(plan);
  const auto count = static_cast<unsigned>(plan.layers.size());
  for (unsigned l = 0; l < count; ++l) {
    plan.layers[l].delay = 1 + 2 * l;
    plan.layers[l].backward_delay = 1 + 2 * (count - 1 - l);
  }
  plan.iterations = plan.options.num_steps + plan.layers.back().delay;
  plan.backward_iterations = plan.options.num_steps + 1 + plan.layers.front().backward_delay;
}

}  // namespace

bool NetworkPlan::isRecurrent() const {
  return std::ranges::any_of(layers, [](const LayerPlan& layer) { return layer.recurrent; });
}

bool NetworkPlan::keepsSecond(std::size_t layer) const { return keepsSecondStates(options, layer); }

unsigned NetworkPlan::listDelay(std::size_t l) const {
  return l < layers.size() ? layers[l].backward_delay : layers[l - 1].backward_delay - 1;
}

NetworkPlan planNetwork(const NetworkOptions& options, unsigned num_tiles, std::size_t bytes_per_tile) {
  checkOptions(options, num_tiles);
  NetworkPlan plan;
  plan.options = options;
  plan.num_tiles = num_tiles;
  plan.lists = planLists(options);
  if (options.over_all_steps && placeScan(plan, bytes_per_tile)) return plan;
  plan.layers = planLayers(plan, bytes_per_tile);
  chooseTrees(plan);
  placeHomes(plan);
  setDelays(plan);
  return plan;
}

}  // namespace snnjax::builders
