#include "exchange_estimate.hpp"

#include <algorithm>
#include <limits>

#include "network_plan.hpp"

namespace snnjax::builders {
namespace {

// A tile takes one 32-bit word a cycle, and some cycles for every run of words that comes from another tile or goes to
// another place: xla_ext/ipu_model/chips/chips.cpp, receive_control_cycles.
constexpr double kCyclesPerFragment = 3;
constexpr double kIdsPerWord = 2;

double received(double fragments, double words) { return fragments * kCyclesPerFragment + words; }

}  // namespace

TreeChoice cheapestGroup(const NetworkPlan& plan, std::size_t layer, unsigned homes) {
  const LayerPlan& own = plan.layers[layer];
  const ListPlan& read = plan.lists[layer];
  const double batch = plan.options.batch, columns = own.tiles.columns;
  const double samples = (plan.options.batch + homes - 1) / homes;
  const bool fires = layer + 1 < plan.lists.size();
  const double lists_in = received(homes, batch * read.stride / kIdsPerWord);
  TreeChoice best{1, std::numeric_limits<double>::infinity()};
  const unsigned most =
      plan.options.group_tiles == 0 ? own.tiles.count : std::min(plan.options.group_tiles, own.tiles.count);
  for (unsigned tiles = plan.options.group_tiles == 0 ? 1 : most; tiles <= most; ++tiles) {
    const double groups = (own.tiles.count + tiles - 1) / tiles;
    const double leads = tiles >= homes ? 1 : groups;  // sums that one leader makes
    double cycles = lists_in;
    if (fires) {
      const double slots = std::min<double>(plan.lists[layer + 1].capacity, tiles * columns);
      const double record = (kListHeader + slots) / kIdsPerWord + slots;
      cycles += leads * received(tiles, tiles * samples * columns) + received(2 * groups, groups * samples * record);
    }
    if (layer > 0 && plan.options.keeps_record) {
      const double dots = samples * read.capacity;
      cycles += lists_in + leads * received(tiles, tiles * dots) + received(groups, groups * dots);
    }
    if (cycles < best.cycles) best = {tiles, cycles};
  }
  return best;
}

}  // namespace snnjax::builders
