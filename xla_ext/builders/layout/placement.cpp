#include "builders/layout/placement.hpp"

#include <cmath>
#include <optional>
#include <utility>

#include "../../error.hpp"
#include "builders/layout/layer_costs.hpp"

namespace snnjax::builders {
namespace {

constexpr double kFilled = 0.86;  // share of a tile's memory that data may take; the rest is code and a user's arrays
// Of it, where a graph took more than its plan expected: 1.6 times on 32 tiles.
constexpr double kSpared = 0.6;
constexpr unsigned kMostColumns = 96;  // of a layer that fits so

// What a choice costs, and takes on its tiles.
struct Option {
  Choice choice;
  double cycles = 0;
  Bytes bytes;
};

unsigned widestOf(const Work& work, unsigned num_tiles) {
  const unsigned least = ceilDivide(work.neurons, std::max(1U, num_tiles)), most = std::max(kMostColumns, least);
  return (std::min(most, work.neurons) + 1) / 2 * 2;
}

// Products by lists, and each or both of them on the matrix unit.
std::vector<Choice> choicesOf(const Work& work, unsigned columns, unsigned groups) {
  std::vector<Choice> choices = {{columns, groups}};
  if (work.unit) choices.push_back({columns, groups, true, false});
  if (!work.unit || !work.learns) return choices;
  choices.push_back({columns, groups, false, true});
  choices.push_back({columns, groups, true, true});
  return choices;
}

std::vector<Option> optionsOf(const Work& work, unsigned num_tiles) {
  std::vector<Option> options;
  for (unsigned columns = 2; columns <= widestOf(work, num_tiles); columns += 2) {
    const unsigned most = std::min(work.batch, num_tiles / ceilDivide(work.neurons, columns));
    for (unsigned groups = 1; groups <= most; ++groups) {
      if (ceilDivide(work.batch, samplesOf(work, groups)) != groups) continue;
      for (const Choice& choice : choicesOf(work, columns, groups)) {
        options.push_back({choice, cyclesOf(work, choice), bytesOf(work, choice)});
      }
    }
  }
  return options;
}

unsigned tilesOf(const Work& work, const Choice& choice) {
  return ceilDivide(work.neurons, choice.columns) * choice.groups;
}

// The cheapest where a byte costs so many cycles, on at most so many tiles if there is one.
const Option& cheapest(const Work& work, const std::vector<Option>& options, double price, unsigned tiles) {
  return *std::ranges::min_element(options, {}, [&](const Option& each) {
    const double cycles = each.cycles + price * (each.bytes.kept + each.bytes.buffer);
    return std::pair(tilesOf(work, each.choice) > tiles, cycles);
  });
}

LayerPlan layerOf(const NetworkPlan& plan, std::size_t l, const Work& work, Choice choice) {
  LayerPlan layer;
  layer.leaky = l == plan.options.layers.size();
  layer.learns_constants = plan.options.learns_constants;
  if (!layer.leaky) layer.neuron = plan.options.layers[l].neuron;
  layer.inputs = plan.lists[l].num_neurons;
  layer.neurons = work.neurons;
  layer.recurrent = work.recurrent.has_value();
  layer.currents_on_unit = choice.currents_on_unit;
  layer.gradient_on_unit = choice.gradient_on_unit;
  layer.gathers_gradient = work.gathers && choice.groups > 1 && !choice.gradient_on_unit;
  layer.gathers_recurrent = layer.recurrent && work.gathers_own && choice.groups > 1;
  layer.tiles = {0, ceilDivide(work.neurons, choice.columns), choice.columns};
  layer.row_parts = rowPartsOf(work, choice);
  const unsigned each = samplesOf(work, choice.groups);
  for (unsigned first = 0; first < work.batch; first += each) {
    layer.sample_groups.push_back({first, std::min(each, work.batch - first)});
  }
  return layer;
}

// Homes of one list lie beside those of the next, and where a narrow last layer has no tiles if that needs no fewer:
// these work at the same time. The samples of a recurrent layer have homes of their own for the spikes that its state
// carries.
void placeHomes(NetworkPlan& plan) {
  const unsigned rows = plan.blockRows(), first = plan.layers.back().tiles.first;
  const bool apart = plan.layers.back().isNarrow() && rows <= first;
  const unsigned tiles = apart ? first : plan.num_tiles;
  for (std::size_t l = 0; l < plan.lists.size(); ++l) {
    plan.lists[l].homes = spreadRows(rows, tiles);
    for (Home& home : plan.lists[l].homes) home.tile = (home.tile + static_cast<unsigned>(l)) % tiles;
  }
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    if (plan.layers[l].recurrent) plan.lists[l + 1].sample_homes = spreadRows(plan.options.batch, plan.num_tiles);
  }
}

// What a user's inputs and outputs take beside, with their gradients, spread over all tiles.
double bytesOfArrays(const NetworkPlan& plan) {
  const NetworkOptions& options = plan.options;
  const unsigned output = options.outputs > 0 ? options.outputs : options.layers.back().neurons;
  const double numbers = double{2} * options.num_steps * options.batch * (plan.lists.front().capacity + output);
  return numbers * kWord / plan.num_tiles;
}

// What homes hold: records of all blocks, and values and slots of events; of a block gradients of entries. While lists
// are made, rows of membranes with their marks, at the most as many words; the records of all steps, among which that
// of a sequence's last one is searched for.
Bytes bytesOfHomes(const NetworkPlan& plan) {
  const std::size_t rows = rowsAtHome(plan), blocks = plan.num_blocks;
  std::size_t kept = 0, most = 0;
  for (std::size_t l = 0; l < plan.lists.size(); ++l) {
    const ListPlan& list = plan.lists[l];
    const std::size_t record = list.stride * 2, entries = list.capacity * kWord, row = list.num_neurons * kWord;
    kept += rows * (blocks * (record + (l == 0 ? 2 * entries : 0)) + entries + (blocks > 1 ? record : 0));
    if (l == 0) continue;
    // Candidates of each worker, with their membranes; cuts, and what they keep.
    const unsigned slots = neuronsOfShare(list.num_neurons);
    kept += rows * (kShares * (listStride(slots) * 2 + slots * kWord) + (kCutWords + kKeptWords) * kWord);
    if (plan.options.keeps_record) kept += rows * row;
    most = std::max<std::size_t>(most, row * 2 * rows);
    if (plan.options.layers[l - 1].recurrent) most = std::max(most, plan.paddedSteps() * record);
  }
  return {static_cast<double>(kept) + bytesOfArrays(plan), static_cast<double>(most)};
}

// A layout, and what it is expected to cost.
struct Layout {
  std::vector<LayerPlan> layers;
  double cycles = 0;
  std::size_t bytes = 0;  // on the fullest tile
};

// A plan with blocks of so many steps.
class Placement {
 public:
  Placement(const NetworkPlan& plan, std::size_t bytes) : plan_(plan), bytes_(bytes) {
    const std::size_t count = plan.options.layers.size() + (plan.options.outputs > 0 ? 1 : 0);
    for (std::size_t l = 0; l < count; ++l) works_.push_back(workOf(plan, l));
    for (const Work& work : works_) options_.push_back(optionsOf(work, plan.num_tiles));
  }

  // The fastest layout that fits, else the one that takes the least. Memory has the lowest price at which it suffices.
  Layout best() const {
    constexpr double kLowest = 1e-2, kHighest = 1e6;
    Layout layout = at(0);
    for (double price = kLowest; layout.bytes > bytes_ && price < kHighest; price *= 1.5) {
      Layout next = at(price);
      if (next.bytes < layout.bytes) layout = std::move(next);
    }
    return layout;
  }

 private:
  // Layers share the tiles, one after the other, and their memory. The last one, often a small readout, takes the last
  // tiles; others leave them free where memory has a price.
  Layout at(double price) const {
    constexpr unsigned kShare = 8;  // of the tiles, at least what the last layer has to itself
    Layout layout;
    const Option& last = cheapest(works_.back(), options_.back(), price, plan_.num_tiles / kShare);
    const unsigned apart = price > 0 ? tilesOf(works_.back(), last.choice) : 0;
    const Bytes homes = bytesOfHomes(plan_);
    double kept = 0, buffer = homes.buffer;
    unsigned used = 0;
    for (std::size_t l = 0; l < works_.size(); ++l) {
      const bool is_last = l + 1 == works_.size();
      const unsigned tiles = apart == 0 ? plan_.num_tiles : is_last ? apart : plan_.num_tiles - apart;
      const auto& [choice, cycles, bytes] = cheapest(works_[l], options_[l], price, tiles);
      LayerPlan& layer = layout.layers.emplace_back(layerOf(plan_, l, works_[l], choice));
      const unsigned own = tilesOf(works_[l], choice);
      if (is_last) layer.tiles.first = (plan_.num_tiles - own) / 2 * 2;  // pairs of tiles receive faster
      const bool is_apart = is_last && layer.tiles.first >= used;
      kept = is_apart ? std::max(kept + unitBytesOf(works_[l], choice).kept, bytes.kept) : kept + bytes.kept;
      used = std::max(used, own);
      layout.cycles += cycles;
      buffer = std::max(buffer, bytes.buffer);
    }
    layout.bytes = static_cast<std::size_t>(homes.kept + kept + buffer);
    return layout;
  }

  const NetworkPlan& plan_;
  std::size_t bytes_;
  std::vector<Work> works_;
  std::vector<std::vector<Option>> options_;  // of each layer
};

// Numbers of blocks to try, a quarter apart.
unsigned moreBlocks(unsigned blocks) { return blocks + std::max(1U, blocks / 4); }

void divideSteps(NetworkPlan& plan, unsigned block_steps) {
  plan.block_steps = block_steps;
  plan.num_blocks = ceilDivide(plan.options.num_steps, block_steps);
}

// The fastest layout that takes at most so many bytes, else the one that takes the least; and the steps of its blocks.
std::pair<Layout, unsigned> fastest(NetworkPlan plan, std::size_t bytes) {
  const unsigned steps = plan.options.num_steps;
  std::optional<Layout> best;
  unsigned block_steps = 0;
  for (unsigned blocks = 1; blocks <= steps; blocks = moreBlocks(blocks)) {
    divideSteps(plan, ceilDivide(steps, blocks));
    const Layout layout = Placement(plan, bytes).best();
    const bool fits = layout.bytes <= bytes, did = best && best->bytes <= bytes;
    if (fits && did && layout.cycles >= best->cycles) break;
    if (best && (did ? !fits : !fits && layout.bytes >= best->bytes)) continue;
    best = layout;
    block_steps = plan.block_steps;
  }
  return {best.value(), block_steps};
}

}  // namespace

void place(NetworkPlan& plan) {
  const double filled = static_cast<double>(plan.bytes_per_tile) * kFilled;
  const auto at_hand = static_cast<std::size_t>(filled);
  const auto [layout, block_steps] =
      fastest(plan, static_cast<std::size_t>(filled * std::pow(kSpared, plan.options.attempts)));
  if (layout.bytes > at_hand) {
    throw Error(ErrorCode::kResourceExhausted,
                "lif_network: `layers` must fit into " + std::to_string(at_hand) + " of the " +
                    std::to_string(plan.bytes_per_tile) + " bytes of each tile, got " + std::to_string(layout.bytes) +
                    " on the fullest. Use more tiles or IPUs, a smaller batch, or fewer steps.");
  }
  divideSteps(plan, block_steps);
  plan.layers = layout.layers;
  plan.bytes = layout.bytes;
  placeHomes(plan);
}

}  // namespace snnjax::builders
