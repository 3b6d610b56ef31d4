#include "calibration/phases.hpp"

#include <array>
#include <cmath>

namespace ipu_model::calibration {
namespace {

std::uint64_t count(double value) { return static_cast<std::uint64_t>(std::lround(value)); }

}  // namespace

void Phases::exchange(const std::vector<Load>& kinds) {
  constexpr std::int32_t kFar = 170;  // arrivalCycles of the farthest pairs
  std::vector<TileTraffic> tiles;
  for (const Load& load : kinds) {
    tiles.push_back({.words_sent = count(load.sent),
                     .words_received = count(load.received),
                     .fragments_sent = count(load.sent_in),
                     .fragments_received = count(load.received_in),
                     .route_cycles = kFar});
  }
  add(static_cast<double>(ipuSyncCycles(chip_) + exchangeCycles(chip_, tiles)));
}

void Phases::compute(const std::vector<Vertices>& kinds) {
  std::uint64_t longest = 0;
  for (const Vertices& kind : kinds) {
    TileSchedule tile(chip_);
    for (std::uint64_t vertex = 0; vertex < count(std::ceil(kind.count)); ++vertex) tile.addVertex(count(kind.slots));
    longest = std::max(longest, tile.cycles());
  }
  add(static_cast<double>(longest));
}

void Phases::multi(double slots, double supervisor) {
  std::array<std::uint64_t, kMaxWorkers> workers{};
  workers.fill(count(slots));
  TileSchedule tile(chip_);
  tile.addMultiVertex(workers, count(supervisor));
  add(static_cast<double>(tile.cycles()));
}

}  // namespace ipu_model::calibration
