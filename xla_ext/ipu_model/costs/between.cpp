// Beyond one IPU: how far a sync travels, what the links carry, and the host. IPUs come in pairs, (0, 1), (2, 3), ...;
// pairs stand in a ladder, and every IPU has links to both of the next pair and of the pair before (ipu.md 3.8,
// PopLibs' constraints).
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "costs/costs.hpp"

namespace ipu_model {
namespace {

std::uint64_t cyclesOf(const Chip& chip, double duration) {
  return static_cast<std::uint64_t>(std::ceil(duration * chip.clock_hz));
}

constexpr double kWordBytes = 4;

// Seconds that the links of every hop are busy, and the hops of the longest way.
struct Ladder {
  const Chip& chip;
  std::uint32_t ipus;
  std::vector<double> busy = std::vector<double>(std::size_t{ipus} * ipus, 0.0);
  std::uint32_t longest = 0;

  void send(std::uint32_t from, std::uint32_t to, double bytes) {
    std::uint32_t hops = 0;
    for (std::uint32_t at = from; at != to; ++hops) {
      const std::uint32_t next = step(at, to);
      const std::uint32_t links = at / 2 == next / 2 ? chip.pair_links : chip.ladder_links;
      busy[at * std::size_t{ipus} + next] += bytes / (links * chip.link_bytes_per_second);
      at = next;
    }
    longest = std::max(longest, hops);
  }

  // To the next pair on the way, in it at once to the side of the destination, where there is such an IPU.
  [[nodiscard]] std::uint32_t step(std::uint32_t at, std::uint32_t to) const {
    if (at / 2 == to / 2) return to;
    const std::uint32_t pair = to / 2 > at / 2 ? at / 2 + 1 : at / 2 - 1;
    return std::min(pair * 2 + to % 2, ipus - 1);
  }
};

}  // namespace

std::uint64_t linkCycles(const Chip& chip, std::span<const std::uint64_t> words, std::uint32_t ipus) {
  Ladder ladder{chip, ipus};
  for (std::uint32_t from = 0; from < ipus; ++from) {
    for (std::uint32_t to = 0; to < ipus; ++to) {
      const std::uint64_t count = words[from * std::size_t{ipus} + to];
      if (from != to && count > 0) ladder.send(from, to, static_cast<double>(count) * kWordBytes);
    }
  }
  if (ladder.longest == 0) return 0;
  const double busiest = *std::max_element(ladder.busy.begin(), ladder.busy.end());
  return cyclesOf(chip, busiest + ladder.longest * chip.link_latency_seconds);
}

std::uint64_t ipuSyncCycles(const Chip& chip) { return chip.ipu_sync_cycles; }

std::uint64_t systemSyncCycles(const Chip& chip, std::uint32_t ipus) {
  if (ipus <= 1) return ipuSyncCycles(chip);
  // There and back along half the ladder, as PopLibs counts it: 1 + (ipus / 2) / 2 hops.
  const std::uint32_t hops = 1 + ipus / 4;
  return ipuSyncCycles(chip) + cyclesOf(chip, 2 * hops * chip.hop_seconds);
}

namespace {

std::uint64_t movingCycles(const Chip& chip, std::uint64_t bytes, std::uint64_t times, double latency) {
  if (bytes == 0) return 0;
  const double moving = static_cast<double>(bytes) / chip.host_bytes_per_second;
  return cyclesOf(chip, moving + static_cast<double>(times) * latency);
}

}  // namespace

std::uint64_t hostCycles(const Chip& chip, std::uint64_t bytes, std::uint64_t requests) {
  return movingCycles(chip, bytes, requests, 2 * chip.host_handshake_seconds);
}

std::uint64_t remoteCycles(const Chip& chip, std::uint64_t bytes, std::uint64_t rows) {
  return movingCycles(chip, bytes, rows, chip.remote_latency_seconds);
}

double seconds(const Chip& chip, std::uint64_t cycles) { return static_cast<double>(cycles) / chip.clock_hz; }

}  // namespace ipu_model
