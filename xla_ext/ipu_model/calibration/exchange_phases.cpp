#include "calibration/exchange_phases.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "costs/costs.hpp"

namespace ipu_model::calibration {
namespace {

std::vector<std::int32_t> allArrivals(const Chip& chip) {
  std::vector<std::int32_t> arrivals;
  for (std::uint32_t source = 0; source < chip.tiles; ++source) {
    for (std::uint32_t destination = 0; destination < chip.tiles; ++destination) {
      if (source != destination) arrivals.push_back(arrivalCycles(chip, source, destination));
    }
  }
  std::sort(arrivals.begin(), arrivals.end());
  return arrivals;
}

double transfer(const Chip& chip, std::uint64_t words, std::int32_t arrival) {
  TileTraffic to{.words_received = words, .fragments_received = 1, .route_cycles = arrival};
  return static_cast<double>(exchangeCycles(chip, std::array{to}));
}

// Only the busiest tile matters: `sent` and `received` words, in so many runs. Its route is taken as the longest.
double busiest(std::uint64_t sent, std::uint64_t sent_in, std::uint64_t received, std::uint64_t received_in) {
  const Chip& chip = chipNamed("c600");
  constexpr std::int32_t kFar = 170;
  const TileTraffic tile{.words_sent = sent,
                         .words_received = received,
                         .fragments_sent = sent_in,
                         .fragments_received = received_in,
                         .route_cycles = kFar};
  return static_cast<double>(exchangeCycles(chip, std::array{tile}));
}

}  // namespace

Table isolatedTransfers() {
  struct Quoted {
    std::uint64_t words;
    double shortest, median, longest;  // ipu.md 3.6
  };
  constexpr std::array kQuoted = {Quoted{1, 59, 87, 171}, Quoted{16, 74, 102, 186}, Quoted{64, 122, 150, 234},
                                  Quoted{1024, 1082, 1110, 1194}};
  const Chip& chip = chipNamed("c600");
  const std::vector<std::int32_t> arrivals = allArrivals(chip);
  Table table{
      "**Isolated transfers** of N words between two tiles of a C600, over all pairs of tiles", "cycles", 0, {}};
  for (const Quoted& quoted : kQuoted) {
    const std::string what = "N = " + std::to_string(quoted.words);
    table.rows.push_back(exactly(what + ", nearest", transfer(chip, quoted.words, arrivals.front()), quoted.shortest));
    table.rows.push_back(
        exactly(what + ", median", transfer(chip, quoted.words, arrivals[arrivals.size() / 2]), quoted.median));
    table.rows.push_back(exactly(what + ", farthest", transfer(chip, quoted.words, arrivals.back()), quoted.longest));
  }
  return table;
}

// What is published of each phase is the load of its busiest tile. Where only one direction is, the other counts as
// less.
Table exchangePhases() {
  const double sync = static_cast<double>(ipuSyncCycles(chipNamed("c600")));
  Table table{"**Exchange phases** of large programs on 1,472 tiles of a C600, by the load of their busiest tile",
              "cycles",
              0,
              {}};
  // docs/EXCHANGE_SLACK_2026_09_09.md, phase 23: 12,960 words in 661 runs; measured from the last tile's arrival, so
  // with the sync.
  table.rows.push_back(
      exactly("vision transformer, partial sums of an MLP (point to point)", busiest(0, 0, 12960, 661) + sync, 14634));
  // docs/EXCHANGE_COST_AND_GELU_2026_09_13.md: 39,040 bytes in 134 and in 244 runs; scheduled for 10,769 and 10,765
  // cycles, 600 of which stand for the sync. (What is scheduled is measured 2 to 3 % longer: ipu.md 3.6.)
  table.rows.push_back(
      exactly("SigLIP, input of the down projection, 134 runs", busiest(0, 0, 9760, 134), 10769 - 600));
  table.rows.push_back(
      exactly("SigLIP, input of the down projection, 244 runs", busiest(0, 0, 9760, 244), 10765 - 600));
  // docs/SDK_ONNX_PROFILE_ANALYSIS.md, Poplar's own exchange: 16 heads of 729 x 736 halves go from tiles that hold 16
  // columns of 364 rows each to tiles that hold 8 rows: 8 x 46 runs of 32 bytes in, 364 out.
  table.rows.push_back(exactly("Poplar, attention scores from columns to rows", busiest(2912, 364, 2944, 368), 4477));
  return table;
}

}  // namespace ipu_model::calibration
