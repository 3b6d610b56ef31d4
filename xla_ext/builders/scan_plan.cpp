#include "scan_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../../poplar_kernels/conventions.hpp"

namespace snnjax::builders {
namespace {

constexpr double kWorkers = 6;
constexpr double kExchangeBytes = 4;  // that a tile receives in a cycle
constexpr double kFilled = 0.7;       // share of a tile's memory that data may take; the rest is code and buffers
constexpr double kSmall = 0.1;        // of all weights, and
constexpr unsigned kSmallTiles = 8;   // of all tiles, what a layer may have for tiles of its own
constexpr unsigned kMostColumns = 96;
constexpr std::size_t kWord = 4;

// A layer's sizes, and what is done with them.
struct Work {
  double inputs, listed;
  unsigned neurons, batch, steps;
  std::size_t capacity, record;  // slots and entries of the lists it reads
  bool dense, valued, learns, sends_gradient;
  std::size_t weight_bytes, states;  // states: numbers kept for each neuron, sample and step
};

struct Choice {
  unsigned columns = 0, groups = 0;
};

unsigned samplesOf(const Work& work, unsigned groups) { return ceilDivide(work.batch, groups); }

// The cycles of a tile in all: issue slots of the busiest worker, and what the tile receives.
double cyclesOf(const Work& work, Choice choice) {
  const double pairs = choice.columns / 2.0, samples = samplesOf(work, choice.groups);
  const double rows = samples * work.steps, rows_of_worker = std::ceil(rows / kWorkers);
  const double blocks = std::ceil(pairs / 4), matrix = (work.inputs + 1) * choice.columns;
  const double entry = 4 * blocks + pairs + (work.dense ? 3 * blocks : 0);
  double slots = rows_of_worker * (20 + 5 * blocks + work.listed * entry);
  const double numbers = std::ceil(samples * pairs / kWorkers) * work.steps;
  slots += 27 * numbers;
  double bytes = matrix * static_cast<double>(work.weight_bytes);
  if (work.learns) {
    slots += 50 * numbers;
    const double parts = workersOnPairs(choice.columns / 2), shares = kWorkers / parts, own = std::ceil(pairs / parts);
    const double found = work.listed / shares, blocks_of_two = std::ceil(own / 2);
    const double search = shares > 1 ? 7 + 7 * std::log2(work.listed + 1) : 0;
    slots += rows * (16 + search + blocks_of_two * (7 + found * 10) - (own == 1 ? 2 * found : 0));
    slots += work.inputs / shares * (own + 1);
    if (choice.groups > 1) {
      slots += matrix / choice.groups / 2 / kWorkers * (6 + 2 * choice.groups);
      bytes += matrix * kWord;
    }
    if (work.sends_gradient) {
      slots += rows_of_worker * (30 + work.listed * (9 + 3 * pairs));
      bytes += matrix * static_cast<double>(work.weight_bytes);
    }
  }
  return slots * kWorkers + bytes / kExchangeBytes;
}

// Bytes on the fullest tile.
std::size_t bytesOf(const Work& work, Choice choice) {
  const std::size_t rows = std::size_t{samplesOf(work, choice.groups)} * work.steps;
  const std::size_t matrix = static_cast<std::size_t>(work.inputs + 1) * choice.columns;
  std::size_t bytes = matrix * (work.weight_bytes + (work.learns ? kWord : 0));
  // Weights that travel beside those that stay, and the gradient of a group beside the sum.
  if (choice.groups > 1) bytes += matrix * (work.weight_bytes + (work.learns ? 2 * kWord / choice.groups : 0));
  bytes += rows * choice.columns * kWord * work.states;
  bytes += rows * work.record * 2;
  if (work.valued || work.sends_gradient) bytes += rows * work.capacity * kWord;  // values or dots
  return bytes;
}

Work workOf(const NetworkPlan& plan, std::size_t l) {
  const NetworkOptions& options = plan.options;
  const ListPlan& list = plan.lists[l];
  const bool is_readout = l == options.layers.size();
  const bool second = !is_readout && options.layers[l].neuron.second_state;
  return {.inputs = static_cast<double>(list.num_neurons),
          .listed = static_cast<double>(list.capacity),
          .neurons = is_readout ? options.outputs : options.layers[l].neurons,
          .batch = options.batch,
          .steps = options.num_steps,
          .capacity = list.capacity,
          .record = list.stride,
          .dense = list.dense,  // events may turn out to be of value 1: they count as such, to have the same place
          .valued = l == 0,     // and have room for values, for the same reason
          .learns = options.keeps_record,
          .sends_gradient = l > 0,
          .weight_bytes = options.half_weights ? 2U : 4U,
          .states = (second ? 7U : 5U)};
}

// The fastest that fits into so many bytes; none: no columns.
Choice chooseFor(const Work& work, unsigned num_tiles, std::size_t bytes) {
  Choice best;
  double least = std::numeric_limits<double>::infinity();
  const unsigned widest = std::min(kMostColumns, (work.neurons + 1) / 2 * 2);
  for (unsigned columns = 2; columns <= widest; columns += 2) {
    const unsigned most = std::min(work.batch, num_tiles / ceilDivide(work.neurons, columns));
    for (unsigned groups = 1; groups <= most; ++groups) {
      const Choice choice = {columns, ceilDivide(work.batch, samplesOf(work, groups))};
      if (choice.groups != groups || bytesOf(work, choice) > bytes) continue;
      const double cycles = cyclesOf(work, choice);
      if (cycles < least) {
        least = cycles;
        best = choice;
      }
    }
  }
  return best;
}

LayerPlan layerOf(const NetworkPlan& plan, std::size_t l, const Work& work, Choice choice) {
  LayerPlan layer;
  layer.leaky = l == plan.options.layers.size();
  layer.learns_constants = plan.options.learns_constants;
  if (!layer.leaky) layer.neuron = plan.options.layers[l].neuron;
  layer.inputs = plan.lists[l].num_neurons;
  layer.neurons = work.neurons;
  layer.tiles = {0, ceilDivide(work.neurons, choice.columns), choice.columns};
  const unsigned each = samplesOf(work, choice.groups);
  for (unsigned first = 0; first < work.batch; first += each) {
    layer.sample_groups.push_back({first, std::min(each, work.batch - first)});
  }
  return layer;
}

// Rows [batch, num_steps] in even shares over all tiles.
void placeHomes(NetworkPlan& plan) {
  const unsigned rows = plan.options.batch * plan.options.num_steps, each = ceilDivide(rows, plan.num_tiles);
  const unsigned count = ceilDivide(rows, each);
  for (ListPlan& list : plan.lists) {
    for (unsigned first = 0, home = 0; first < rows; first += each, ++home) {
      const auto tile = static_cast<unsigned>(std::size_t{home} * plan.num_tiles / count);
      list.homes.push_back({tile, first, std::min(each, rows - first)});
    }
  }
}

// What homes hold: records and values of their rows; while lists are made, a row of membranes, two of thresholds and
// one of gradients.
std::size_t bytesOfHomes(const NetworkPlan& plan) {
  const std::size_t rows = ceilDivide(plan.options.batch * plan.options.num_steps, plan.num_tiles);
  std::size_t kept = 0, most = 0;
  for (const ListPlan& list : plan.lists) {
    const bool may_have_values = &list == &plan.lists.front();
    kept += rows * (list.stride * 2 + list.capacity * kWord * (may_have_values ? 3 : 1));
    most = std::max<std::size_t>(most, list.num_neurons * kWord * (2 + 2 * rows));
  }
  return kept + most;
}

// Layers with few weights, such as readouts, have tiles of their own, the last ones; the others share the rest, and
// their memory. Empty where some layer does not fit.
std::vector<LayerPlan> placeLayers(const NetworkPlan& plan, const std::vector<Work>& works, std::size_t bytes) {
  const auto weightsOf = [](const Work& work) { return work.inputs * work.neurons; };
  double weights = 0;
  for (const Work& work : works) weights += weightsOf(work);
  std::vector<Choice> choices(works.size());
  std::vector<unsigned> first(works.size(), 0);
  unsigned tiles = plan.num_tiles;
  for (std::size_t l = 0; l < works.size(); ++l) {
    if (weightsOf(works[l]) > kSmall * weights) continue;
    const Choice choice = chooseFor(works[l], tiles / kSmallTiles, bytes);
    if (choice.columns == 0) continue;
    choices[l] = choice;
    tiles -= ceilDivide(works[l].neurons, choice.columns) * choice.groups;
    first[l] = tiles;
    weights -= weightsOf(works[l]);
  }
  std::vector<LayerPlan> layers;
  for (std::size_t l = 0; l < works.size(); ++l) {
    if (choices[l].columns == 0) {
      const double share = static_cast<double>(bytes) * weightsOf(works[l]) / weights;
      choices[l] = chooseFor(works[l], tiles, static_cast<std::size_t>(share));
    }
    if (choices[l].columns == 0) return {};
    layers.push_back(layerOf(plan, l, works[l], choices[l]));
    layers.back().tiles.first = first[l];
  }
  return layers;
}

}  // namespace

bool placeScan(NetworkPlan& plan, std::size_t bytes_per_tile) {
  const NetworkOptions& options = plan.options;
  if (std::ranges::any_of(options.layers, [](const LayerOptions& layer) { return layer.recurrent; })) return false;
  const auto at_hand = static_cast<std::size_t>(static_cast<double>(bytes_per_tile) * kFilled);
  const std::size_t at_homes = bytesOfHomes(plan), count = options.layers.size() + (options.outputs > 0 ? 1 : 0);
  if (at_homes >= at_hand) return false;
  std::vector<Work> works;
  for (std::size_t l = 0; l < count; ++l) works.push_back(workOf(plan, l));
  const std::vector<LayerPlan> layers = placeLayers(plan, works, at_hand - at_homes);
  if (layers.empty()) return false;
  plan.layers = layers;
  plan.scans = true;
  placeHomes(plan);
  return true;
}

}  // namespace snnjax::builders
