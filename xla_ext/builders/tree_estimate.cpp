#include "tree_estimate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "network_plan.hpp"

namespace snnjax::builders {
namespace {

// A tile takes one 32-bit word a cycle, and some cycles for every run of words that comes from another tile or goes to
// another place: xla_ext/ipu_model/chips/chips.cpp, receive_control_cycles.
constexpr double kCyclesPerFragment = 3;
constexpr double kIdsPerWord = 2;

// Six workers take turns, one issue slot each. Issue slots from poplar_kernels/select_spikes_cycles.hpp and
// sum_rows_cycles.hpp: a vertex by itself; two passes over a neuron, and over a block of neighbours that came from one
// tile; an id; a list that is merged; a pair of columns and each row of their sum.
constexpr unsigned kWorkers = 6;
constexpr double kSlotsPerVertex = 150, kSlotsPerNeuron = 8, kSlotsPerBlock = 14, kSlotsPerId = 2, kSlotsPerList = 42;
constexpr double kSlotsPerPair = 6, kSlotsPerRow = 2;

struct Tree {
  double tiles, groups, parts;  // tiles of a group, groups of the layer, parts of a group
  double leads;                 // groups that one leader serves
  double samples;               // of a home
  double sent;                  // numbers per neuron that leaders receive: its membrane, and what raises its threshold
};

double received(double fragments, double words) { return fragments * kCyclesPerFragment + words; }

// Cycles for items that workers share, `slots` issue slots each.
double shared(double items, double slots) { return kWorkers * std::ceil(items / kWorkers) * slots; }

// From membranes on the tiles to candidates at the leaders to lists at the homes.
double listing(const Tree& tree, double columns, double capacity) {
  const double chunk = std::ceil(tree.tiles * columns / tree.parts), slots = std::min(capacity, chunk);
  const double lists = tree.groups * tree.parts, record = (kListHeader + slots) / kIdsPerWord + slots;
  const double select = kSlotsPerVertex + chunk * (kSlotsPerNeuron + kSlotsPerBlock / columns) + slots * kSlotsPerId;
  const double merge = kSlotsPerVertex + lists * kSlotsPerList + capacity * kSlotsPerId;
  return tree.leads * (received(tree.tiles * tree.sent, tree.tiles * tree.samples * columns * tree.sent) +
                       shared(tree.samples * tree.parts, select)) +
         received(2 * tree.groups, lists * tree.samples * record) + shared(tree.samples, merge);
}

// From dot products on the tiles to their sums at the homes.
double summing(const Tree& tree, double capacity) {
  const double dots = tree.samples * capacity;
  const auto sum = [&](double rows) {
    return received(rows, rows * dots) + kSlotsPerVertex * kWorkers + dots / 2 * (kSlotsPerPair + rows * kSlotsPerRow);
  };
  return tree.leads * sum(tree.tiles) + sum(tree.groups);
}

}  // namespace

TreeChoice cheapestTree(const NetworkPlan& plan, std::size_t layer, unsigned homes) {
  const LayerPlan& own = plan.layers[layer];
  const ListPlan& read = plan.lists[layer];
  const double samples = (plan.options.batch + homes - 1) / homes;
  const double lists_in = received(homes, plan.options.batch * read.stride / kIdsPerWord);
  TreeChoice best{1, 1, std::numeric_limits<double>::infinity()};
  for (unsigned tiles = 1; tiles <= own.tiles.count; ++tiles) {
    const unsigned groups = (own.tiles.count + tiles - 1) / tiles;
    const double leads = own.tiles.count / groups >= homes ? 1 : groups;  // see LayerPlan::leader
    Tree tree{static_cast<double>(tiles),
              static_cast<double>(groups),
              1,
              leads,
              samples,
              own.neuron.raises_threshold ? 2.0 : 1.0};
    const bool is_summed = (layer > 0 || plan.options.inputs_gradient) && plan.options.keeps_record;
    double gradient = is_summed ? lists_in + summing(tree, read.capacity) : 0;
    if (own.recurrent && plan.options.keeps_record) gradient += summing(tree, plan.lists[layer + 1].capacity);
    for (unsigned parts = 1; parts <= kWorkers; ++parts) {
      tree.parts = parts;
      const bool fires = plan.firesLists(layer);
      const double cycles =
          lists_in + gradient + (fires ? listing(tree, own.tiles.columns, plan.lists[layer + 1].capacity) : 0);
      if (cycles < best.cycles) best = {tiles, parts, cycles};
    }
  }
  return best;
}

}  // namespace snnjax::builders
