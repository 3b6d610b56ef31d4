// The place of a logical tile on the chip, and the travel time of a word between two of them. The closed form is a fact
// about the IPU21 found by osmarks/ipu-stack (crates/ipu-target/src/ipu21/fabric.rs), reimplemented here; over all
// pairs of the 1,472 tiles it gives the -78 to 112 cycles of ipu.md 3.6, and with the way to memory its 59 to 171
// (median 87) for one word. Other chips are assumed to be wired alike; Mk1 has 19 rows in place of 23.
#include <cstdlib>

#include "costs/costs.hpp"

namespace ipu_model {
namespace {

constexpr int kTilesPerRow = 64;    // 16 columns of 4 lanes
constexpr int kColumnsPerHalf = 8;  // columns 8 to 15 are the way back, 15 beside 0

struct Place {
  int row, column, lane;
  [[nodiscard]] int half() const { return column / kColumnsPerHalf; }
  // Distance from the chip's edge at which both halves begin: 0 to 7.
  [[nodiscard]] int depth() const { return half() == 0 ? column : 2 * kColumnsPerHalf - 1 - column; }
  [[nodiscard]] int within() const { return column % kColumnsPerHalf; }
};

// Pairs of logical tiles (2p, 2p + 1) fill a column upwards and the next downwards, two columns to a lane's block.
Place placeOf(const Chip& chip, std::uint32_t logical) {
  const int rows = static_cast<int>(chip.tiles) / kTilesPerRow;
  const int pair = static_cast<int>(logical) / 2;
  const int block = pair / rows;
  const int step = pair % rows;
  const int position = (block / 2) * 4 + block % 2 + 2 * (static_cast<int>(logical) % 2);
  return {block % 2 == 0 ? step : rows - 1 - step, position / 4, position % 4};
}

// Cycles across the columns: six a column, and what entering the destination's lane takes. Its sign is the direction.
int acrossColumns(const Place& from, const Place& to) {
  const int leaves_at = from.depth() + (from.half() ^ (from.lane & 1));
  const int columns = 6 * (to.depth() - leaves_at);
  if (to.lane > 1) return columns + (to.half() == (to.lane & 1) ? 2 : 4);
  return columns + (to.half() == to.lane ? 1 : 5);
}

}  // namespace

std::int32_t routeCycles(const Chip& chip, std::uint32_t source, std::uint32_t destination) {
  const Place from = placeOf(chip, source);
  const Place to = placeOf(chip, destination);
  constexpr int kBias = 34;
  const int edge = 4 * (from.depth() - to.depth());
  const int along_rows = 2 * (from.row - to.row);
  const int turn = from.half() == to.half() ? from.within() + 1 : 16 - from.within();
  const int column_pair = from.within() / 2;
  const int crossing = (from.half() * kColumnsPerHalf + column_pair) - to.column + (column_pair ^ 3);
  return edge + along_rows + turn + crossing + std::abs(acrossColumns(from, to)) - kBias;
}

std::int32_t arrivalCycles(const Chip& chip, std::uint32_t source, std::uint32_t destination) {
  // A route of less than 0 makes the receiver, not the sender, start first: nothing is gained by it.
  const std::int32_t route = routeCycles(chip, source, destination);
  const std::uint32_t row = static_cast<std::uint32_t>(placeOf(chip, destination).row);
  const std::uint32_t memory = chip.memory_cycles + chip.memory_cycles_per_row * row;
  return static_cast<std::int32_t>(chip.exchange_setup_cycles + memory) + (route > 0 ? route : 0);
}

}  // namespace ipu_model
