#include "scan_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "../../poplar_kernels/conventions.hpp"

namespace snnjax::builders {
namespace {

constexpr double kExchangeBytes = 4;  // that a tile receives in a cycle
constexpr double kFilled = 0.7;       // share of a tile's memory that data may take; the rest is code and buffers
constexpr double kSmall = 0.1;        // of all weights, and
constexpr unsigned kSmallTiles = 8;   // of all tiles, what a layer may have for tiles of its own
constexpr unsigned kMostColumns = 96;
constexpr std::size_t kWord = 4;

// The lists that multiply a matrix of a layer.
struct Product {
  double inputs, listed;
  std::size_t capacity, record;  // slots and entries of a list
  bool dense, valued, sends_gradient;
};

// A layer's sizes, and what is done with them.
struct Work {
  Product input;
  std::optional<Product> recurrent;
  unsigned neurons, batch, steps;
  bool learns, sends_membranes;
  std::size_t weight_bytes, states;  // states: numbers kept for each neuron, sample and step

  double weights() const { return (input.inputs + (recurrent ? recurrent->inputs : 0)) * neurons; }
};

struct Choice {
  unsigned columns = 0, groups = 0;
};

unsigned samplesOf(const Work& work, unsigned groups) { return ceilDivide(work.batch, groups); }

// Slots of the busiest worker, and bytes that a tile receives.
struct Load {
  double slots = 0, bytes = 0;

  Load& operator+=(const Load& other) {
    slots += other.slots;
    bytes += other.bytes;
    return *this;
  }
  double cycles() const { return slots * kWorkers + bytes / kExchangeBytes; }
};

// Of all steps: the gradients of a matrix.
Load gradientOf(const Work& work, const Product& product, Choice choice) {
  const double pairs = choice.columns / 2.0, matrix = (product.inputs + 1) * choice.columns;
  const double rows = double{1} * samplesOf(work, choice.groups) * work.steps;
  const double parts = workersOnPairs(choice.columns / 2), shares = kWorkers / parts, own = std::ceil(pairs / parts);
  const double found = product.listed / shares, blocks_of_two = std::ceil(own / 2);
  const double search = shares > 1 ? 7 + 7 * std::log2(product.listed + 1) : 0;
  Load load;
  load.slots += rows * (16 + search + blocks_of_two * (7 + found * 10) - (own == 1 ? 2 * found : 0));
  load.slots += product.inputs / shares * (own + 1);
  if (choice.groups == 1) return load;
  load.slots += matrix / choice.groups / 2 / kWorkers * (6 + 2 * choice.groups);
  load.bytes += matrix * kWord;
  return load;
}

// Of all steps: the currents of a matrix and its gradients.
Load productOf(const Work& work, const Product& product, Choice choice) {
  const double pairs = choice.columns / 2.0, blocks = std::ceil(pairs / 4);
  const double rows_of_worker = std::ceil(double{1} * samplesOf(work, choice.groups) * work.steps / kWorkers);
  const double entry = 4 * blocks + pairs + (product.dense ? 3 * blocks : 0);
  const double bytes = (product.inputs + 1) * choice.columns * static_cast<double>(work.weight_bytes);
  Load load = {rows_of_worker * (20 + 5 * blocks + product.listed * entry), bytes};
  if (!work.learns) return load;
  load += gradientOf(work, product, choice);
  if (product.sends_gradient) load += {rows_of_worker * (30 + product.listed * (9 + 3 * pairs)), bytes};
  return load;
}

// Of a step: the loop of a recurrent layer, with its exchanges.
double stepOf(const Work& work, const Product& product, Choice choice) {
  constexpr double kExchange = 300, kSet = 40, kMessage = 3, kFields = 40;
  const double samples = samplesOf(work, choice.groups), pairs = choice.columns / 2.0;
  const double blocks = ceilDivide(work.neurons, choice.columns);
  const double numbers = std::ceil(samples * pairs / kWorkers), each = samples * product.listed / kWorkers;
  Load load = {2 * kFields + numbers * (60 + 5 * product.listed) + std::ceil(pairs / 16) * (10 + 4 * pairs), 0};
  const double sent = std::ceil(choice.columns / 32.0) + (work.sends_membranes ? choice.columns : 0);
  double cycles = 2 * kExchange + 4 * kSet + blocks * (sent + kMessage);
  load.slots += 2 * kFields + blocks / kWorkers * 6 + product.listed * (work.sends_membranes ? 12 : 3);
  load.bytes += samples * static_cast<double>(product.record) * 2;
  if (work.learns) {
    const auto entries = static_cast<unsigned>(samples) * static_cast<unsigned>(product.capacity);
    cycles += 2 * kExchange + 3 * kSet + planSums(static_cast<unsigned>(blocks), entries).cycles;
    load.slots += 3 * kFields + numbers * 70 + std::ceil(each) * (8 + 2 * pairs);
  }
  return load.cycles() + cycles;
}

// The cycles of a tile in all.
double cyclesOf(const Work& work, Choice choice) {
  const double numbers = std::ceil(samplesOf(work, choice.groups) * (choice.columns / 2.0) / kWorkers) * work.steps;
  Load load = productOf(work, work.input, choice);
  if (!work.recurrent) {
    load.slots += (work.learns ? 77 : 27) * numbers;
    return load.cycles();
  }
  if (work.learns) load += gradientOf(work, *work.recurrent, choice);
  load.bytes += (work.recurrent->inputs + 1) * choice.columns * static_cast<double>(work.weight_bytes);
  return load.cycles() + work.steps * stepOf(work, *work.recurrent, choice);
}

// Bytes on the fullest tile, of a matrix and the lists that multiply it. Weights, and the sum of their gradients, are
// spread over the groups, unless they stay where an array has them.
double bytesOf(const Work& work, const Product& product, Choice choice) {
  const double rows = double{1} * samplesOf(work, choice.groups) * work.steps;
  const double matrix = (product.inputs + 1) * choice.columns;
  const double share = work.neurons % choice.columns == 0 ? 1 : 1.0 / choice.groups;
  double bytes = matrix * static_cast<double>(work.weight_bytes) * share + (work.learns ? matrix * kWord * share : 0);
  if (choice.groups > 1 && work.learns) bytes += matrix * kWord * (1 + (share == 1 ? 1.0 / choice.groups : 0));
  bytes += rows * static_cast<double>(product.record) * 2;
  if (product.valued || product.sends_gradient) bytes += rows * static_cast<double>(product.capacity) * kWord;
  return bytes;
}

std::size_t bytesOf(const Work& work, Choice choice) {
  const double rows = double{1} * samplesOf(work, choice.groups) * work.steps;
  double bytes = bytesOf(work, work.input, choice) + rows * choice.columns * kWord * static_cast<double>(work.states);
  double inputs = work.input.inputs;
  if (work.recurrent) {
    bytes += bytesOf(work, *work.recurrent, choice);
    inputs += work.recurrent->inputs;  // those of a loop stay on all tiles
  }
  // Weights that travel to the tiles of all groups.
  if (choice.groups > 1) bytes += (inputs + 1) * choice.columns * static_cast<double>(work.weight_bytes);
  return static_cast<std::size_t>(bytes);
}

Product productOf(const ListPlan& list, bool sends_gradient) {
  return {.inputs = static_cast<double>(list.num_neurons),
          .listed = static_cast<double>(list.capacity),
          .capacity = list.capacity,
          .record = list.stride,
          .dense = list.dense,  // events may turn out to be of value 1: they count as such, to have the same place
          .valued = list.valued,
          .sends_gradient = sends_gradient};
}

Work workOf(const NetworkPlan& plan, std::size_t l) {
  const NetworkOptions& options = plan.options;
  const bool is_readout = l == options.layers.size();
  const bool second = !is_readout && options.layers[l].neuron.second_state;
  Work work = {.input = productOf(plan.lists[l], l > 0),
               .recurrent = {},
               .neurons = is_readout ? options.outputs : options.layers[l].neurons,
               .batch = options.batch,
               .steps = options.num_steps,
               .learns = options.keeps_record,
               .sends_membranes = false,
               .weight_bytes = options.half_weights ? 2U : 4U,
               .states = (second ? 7U : 5U)};
  work.input.valued = l == 0;  // events have room for values, for the same reason
  if (is_readout || !options.layers[l].recurrent) return work;
  work.recurrent = productOf(plan.lists[l + 1], false);
  work.sends_membranes = canOverflow(plan.lists[l + 1]);
  work.states += 2;  // gradients of spikes beside the tile, and the slots of neurons in lists
  return work;
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
  layer.recurrent = work.recurrent.has_value();
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

// The samples of a recurrent layer have homes of their own for the lists of its loop: on tiles that it leaves free if
// there are enough, else spread over all.
void placeSamples(NetworkPlan& plan) {
  const unsigned batch = plan.options.batch;
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    const LayerPlan& layer = plan.layers[l];
    if (!layer.recurrent) continue;
    const unsigned used = layer.tiles.count * static_cast<unsigned>(layer.sample_groups.size());
    const unsigned spare = plan.num_tiles - used, first = layer.tiles.first + used;
    for (unsigned b = 0; b < batch; ++b) {
      const std::size_t at = spare >= batch ? std::size_t{first} + std::size_t{b} * spare / batch
                                            : std::size_t{b} * plan.num_tiles / batch;
      plan.lists[l + 1].sample_homes.push_back({static_cast<unsigned>(at % plan.num_tiles), b, 1});
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
  double weights = 0;
  for (const Work& work : works) weights += work.weights();
  std::vector<Choice> choices(works.size());
  std::vector<unsigned> first(works.size(), 0);
  unsigned tiles = plan.num_tiles;
  for (std::size_t l = 0; l < works.size(); ++l) {
    if (works[l].weights() > kSmall * weights) continue;
    const Choice choice = chooseFor(works[l], tiles / kSmallTiles, bytes);
    if (choice.columns == 0) continue;
    choices[l] = choice;
    tiles -= ceilDivide(works[l].neurons, choice.columns) * choice.groups;
    first[l] = tiles;
    weights -= works[l].weights();
  }
  std::vector<LayerPlan> layers;
  for (std::size_t l = 0; l < works.size(); ++l) {
    if (choices[l].columns == 0) {
      const double share = static_cast<double>(bytes) * works[l].weights() / weights;
      choices[l] = chooseFor(works[l], tiles, static_cast<std::size_t>(share));
    }
    if (choices[l].columns == 0) return {};
    layers.push_back(layerOf(plan, l, works[l], choices[l]));
    layers.back().tiles.first = first[l];
  }
  return layers;
}

}  // namespace

SumsPlan planSums(unsigned blocks, unsigned entries) {
  constexpr unsigned kMessage = 3, kSlots = 2;  // cycles of a further message; slots of a pair in a row
  SumsPlan best;
  best.cycles = std::numeric_limits<double>::infinity();
  for (unsigned parts = 1; parts <= blocks; ++parts) {
    const unsigned most = std::min(ceilDivide(entries, 2), std::max(1U, blocks / parts));
    const unsigned of_run = ceilDivide(ceilDivide(entries, most), 2) * 2, runs = ceilDivide(entries, of_run);
    const double rows = ceilDivide(blocks, parts);
    const double summed = rows * (of_run + kMessage + kWorkers * kSlots * std::ceil(of_run / 2.0 / kWorkers));
    const double cycles = summed + parts * (double{1} * entries + kMessage * runs);
    if (cycles < best.cycles) best = {parts, runs, of_run, cycles};
  }
  return best;
}

bool placeScan(NetworkPlan& plan, std::size_t bytes_per_tile) {
  const NetworkOptions& options = plan.options;
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
  placeSamples(plan);
  return true;
}

}  // namespace snnjax::builders
