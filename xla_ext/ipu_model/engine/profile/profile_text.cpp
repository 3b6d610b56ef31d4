// The profile as tables to read, in the form that the vendor's documents show: target, graph, memory, execution.
#include <algorithm>
#include <array>
#include <cstdio>
#include <ostream>

#include "ipu_model/profile.hpp"

namespace ipu_model {
namespace {

std::string withCommas(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

// With one digit behind the point.
std::string withCommas(double number) {
  const auto tenths = static_cast<std::uint64_t>(number * 10 + 0.5);
  return withCommas(tenths / 10) + '.' + std::to_string(tenths % 10);
}

std::string padded(std::string text, std::size_t width) {
  return text + std::string(width - std::min(width, text.size()), ' ');
}

std::string leftPadded(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

void printTarget(const Profile& profile, std::ostream& stream) {
  constexpr std::size_t kWidth = 24;
  const auto line = [&](const char* name, const std::string& value) {
    stream << "  " << padded(name, kWidth) << value << '\n';
  };
  constexpr double kKilo = 1024, kMega = 1024 * 1024;
  const auto per_tile = static_cast<double>(profile.memory_per_tile);
  const std::uint64_t tiles = std::uint64_t{profile.ipus} * profile.tiles_per_ipu;
  const double memory = per_tile * static_cast<double>(tiles) / kMega;
  stream << "Target:\n";
  line("Number of IPUs:", withCommas(std::uint64_t{profile.ipus}));
  line("Tiles per IPU:", withCommas(std::uint64_t{profile.tiles_per_ipu}));
  line("Total Tiles:", withCommas(tiles));
  line("Memory Per-Tile:", withCommas(per_tile / kKilo) + " kB");
  line("Total Memory:", withCommas(memory) + " MB");
  line("Clock Speed (approx):", withCommas(profile.clock_hz / 1e6) + " MHz");
  line("Number of Replicas:", withCommas(std::uint64_t{profile.replicas}));
  line("IPUs per Replica:", withCommas(std::uint64_t{profile.ipus / profile.replicas}));
  line("Tiles per Replica:", withCommas(tiles / profile.replicas));
  line("Memory per Replica:", withCommas(memory / profile.replicas) + " MB");
}

void printGraph(const GraphCounts& graph, std::ostream& stream) {
  constexpr std::size_t kName = 27, kNumber = 9;
  const auto line = [&](const char* name, std::uint64_t count) {
    stream << "  " << padded(name, kName) << leftPadded(withCommas(count), kNumber) << '\n';
  };
  stream << "\nGraph:\n";
  line("Number of vertices:", graph.vertices);
  line("Number of edges:", graph.edges);
  line("Number of variables:", graph.variables);
  line("Number of compute sets:", graph.compute_sets);
}

void printMemory(const std::vector<TileProfile>& tiles, std::ostream& stream) {
  TileProfile sum;
  std::size_t fullest = 0;
  for (std::size_t tile = 0; tile < tiles.size(); ++tile) {
    const TileProfile& one = tiles[tile];
    sum.variables += one.variables;
    sum.vertices += one.vertices;
    sum.code += one.code;
    sum.exchange_code += one.exchange_code;
    sum.buffers += one.buffers;
    sum.stacks += one.stacks;
    if (one.memory() > tiles[fullest].memory()) fullest = tile;
  }
  constexpr std::size_t kName = 34, kNumber = 15;
  const auto line = [&](const char* name, std::uint64_t bytes) {
    stream << "        " << padded(name, kName) << leftPadded(withCommas(bytes), kNumber) << " B\n";
  };
  stream << "\nMemory Usage:\n  Total:\n    Including Gaps:         " << withCommas(sum.memory())
         << " B\n    Excluding Gaps:\n      By Data Type:\n";
  line("Variables:", sum.variables);
  line("Vertex Instances:", sum.vertices);
  line("Vertex Code:", sum.code);
  line("Internal Exchange Code:", sum.exchange_code);
  line("Internal Exchange Buffers:", sum.buffers);
  line("Stacks:", sum.stacks);
  if (tiles.empty()) return;
  constexpr double kKilo = 1024;
  const std::uint64_t most = tiles[fullest].memory();
  stream << "  By Tile (Including Gaps):\n    Maximum (Including Gaps): " << withCommas(most) << " ("
         << withCommas(static_cast<double>(most) / kKilo) << " K) on tile " << fullest << '\n';
}

void printExecution(const Profile& profile, std::ostream& stream) {
  constexpr std::size_t kName = 54;
  const auto total = static_cast<double>(std::max<std::uint64_t>(profile.cycles.total(), 1));
  const auto line = [&](const char* name, double cycles) {
    stream << "  " << padded(name, kName) << withCommas(cycles) << " (" << withCommas(100 * cycles / total)
           << "% of total)\n";
  };
  double compute = 0;
  for (const TileProfile& tile : profile.tiles) compute += static_cast<double>(tile.cycles);
  compute /= static_cast<double>(std::max<std::size_t>(profile.tiles.size(), 1));
  stream << "\nExecution:\n\n  " << padded("Total cycles:", kName) << withCommas(profile.cycles.total()) << " (approx "
         << withCommas(profile.seconds() * 1e6) << " microseconds)\n";
  line("Tile average compute cycles (including idle threads):", compute);
  line("Tile average IPU exchange cycles:", static_cast<double>(profile.cycles.exchange));
  line("Tile average host exchange cycles:", static_cast<double>(profile.cycles.host));
  line("Tile average sync cycles:", static_cast<double>(profile.cycles.sync));
  stream << "\n  Cycles by vertex type:\n";
  std::size_t width = 0;
  for (const CodeletProfile& codelet : profile.codelets) width = std::max(width, codelet.name.size());
  for (const CodeletProfile& codelet : profile.codelets) {
    stream << "    " << padded(codelet.name, width) << leftPadded("(" + std::to_string(codelet.vertices), 10)
           << " instances):" << leftPadded(withCommas(codelet.cycles), 15)
           << (codelet.unknown > 0 ? ", of unknown cost" : "") << '\n';
  }
}

void printSteps(const Profile& profile, std::ostream& stream) {
  stream << "\n  Compute sets (executions, cycles, exchange cycles, balance):\n";
  for (const ComputeSetProfile& compute_set : profile.compute_sets) {
    if (compute_set.executions == 0) continue;
    std::array<char, 16> balance{};
    std::snprintf(balance.data(), balance.size(), "%.2f", compute_set.balance());
    stream << "    " << compute_set.name << ": " << withCommas(compute_set.executions) << ", "
           << withCommas(compute_set.cycles) << ", " << withCommas(compute_set.exchange.cycles) << ", "
           << balance.data() << '\n';
  }
}

}  // namespace

void printSummary(const Profile& profile, std::ostream& stream, bool steps) {
  stream << "IPU Model (not measured on hardware): " << profile.chip << "\n\n";
  printTarget(profile, stream);
  printGraph(profile.graph, stream);
  printMemory(profile.tiles, stream);
  printExecution(profile, stream);
  if (steps) printSteps(profile, stream);
}

}  // namespace ipu_model
