// A phase of the exchange is scheduled when the program is compiled: it ends with its busiest tile.
#include <algorithm>

#include "costs/costs.hpp"

namespace ipu_model {
namespace {

// One word a cycle in either direction, both at once, and what switches the source, the pointer or the sender's address
// between two messages; one instruction can do that for both directions (osmarks/ipu-stack,
// docs/EXCHANGE_INSTRUCTION_REFERENCE.md: sendpicp). The first message of each is part of the phase's start.
std::uint64_t busyCycles(const Chip& chip, const TileTraffic& tile) {
  constexpr std::uint64_t kWord = 4;
  const auto further = [](std::uint64_t fragments) { return fragments > 1 ? fragments - 1 : 0; };
  const std::uint64_t received = tile.words_received - tile.paired_words_received / 2;
  const std::uint64_t words = std::max(tile.words_sent, received) * kWord / chip.exchange_bytes_per_cycle;
  return words + std::max(further(tile.fragments_sent) * chip.send_control_cycles,
                          further(tile.fragments_received) * chip.receive_control_cycles);
}

}  // namespace

std::uint64_t exchangeCycles(const Chip& chip, std::span<const TileTraffic> tiles) {
  std::uint64_t receivers = 0;
  std::uint64_t senders = 0;
  std::uint64_t arrival = 0;
  for (const TileTraffic& tile : tiles) {
    const std::uint64_t busy = busyCycles(chip, tile);
    const std::uint64_t route = static_cast<std::uint64_t>(std::max(tile.route_cycles, 0));
    arrival = std::max(arrival, route);
    if (tile.words_received > 0) receivers = std::max(receivers, busy + route);
    senders = std::max(senders, busy);
  }
  // The last word of the busiest sender travels too; its destination is unknown here, so the longest route is assumed.
  return senders == 0 ? 0 : std::max(receivers, senders + arrival);
}

std::uint64_t pairedWords(const Chip& chip, std::uint64_t words) {
  return chip.paired_words_min > 0 && words >= chip.paired_words_min ? words / 2 * 2 : 0;
}

}  // namespace ipu_model
