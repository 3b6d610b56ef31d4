// The profile as a table to read.
#include <algorithm>
#include <iomanip>
#include <ostream>

#include "ipu_model/profile.hpp"

namespace ipu_model {
namespace {

void printPhase(std::ostream& stream, const char* name, std::uint64_t cycles, const Profile& profile) {
  const auto total = static_cast<double>(std::max<std::uint64_t>(profile.cycles.total(), 1));
  const auto part = static_cast<double>(cycles);
  stream << "  " << std::left << std::setw(10) << name << std::right << std::setw(16) << cycles << " cycles "
         << std::setw(12) << std::setprecision(3) << part / profile.clock_hz * 1e3 << " ms " << std::setw(6)
         << std::setprecision(1) << 100 * part / total << " %\n";
}

void printMemory(std::ostream& stream, const Profile& profile) {
  if (profile.tiles.empty()) return;
  std::uint64_t sum = 0, most = 0;
  std::size_t fullest = 0;
  for (std::size_t tile = 0; tile < profile.tiles.size(); ++tile) {
    const std::uint64_t bytes = profile.tiles[tile].memory();
    sum += bytes;
    if (bytes > most) {
      most = bytes;
      fullest = tile;
    }
  }
  stream << "Memory of a tile: mean " << sum / profile.tiles.size() << " bytes, most " << most << " (tile " << fullest
         << ") of " << profile.memory_per_tile << "\n";
}

}  // namespace

void printSummary(const Profile& profile, std::ostream& stream) {
  const auto flags = stream.flags();
  const auto precision = stream.precision();
  stream << std::fixed << std::setprecision(1) << "IPU Model (not measured on hardware): " << profile.ipus << " x "
         << profile.chip << ", " << profile.tiles_per_ipu << " tiles each, " << profile.clock_hz / 1e6 << " MHz\n"
         << "Time: " << profile.cycles.total() << " cycles, " << std::setprecision(3) << profile.seconds() * 1e3
         << " ms\n";
  printPhase(stream, "compute", profile.cycles.compute, profile);
  printPhase(stream, "exchange", profile.cycles.exchange, profile);
  printPhase(stream, "sync", profile.cycles.sync, profile);
  printPhase(stream, "host", profile.cycles.host, profile);
  printMemory(stream, profile);
  stream << "Compute sets (executions, cycles, exchange cycles, balance):\n" << std::setprecision(2);
  for (const ComputeSetProfile& compute_set : profile.compute_sets) {
    if (compute_set.executions == 0) continue;
    stream << "  " << compute_set.name << ": " << compute_set.executions << ", " << compute_set.cycles << ", "
           << compute_set.exchange.cycles << ", " << compute_set.balance() << '\n';
  }
  stream << "Codelets (count, mean and most cycles):\n";
  for (const CodeletProfile& codelet : profile.codelets) {
    stream << "  " << codelet.name << ": " << codelet.count << ", " << codelet.mean() << ", " << codelet.max
           << (codelet.unknown > 0 ? ", of unknown cost" : "") << '\n';
  }
  stream.flags(flags);
  stream.precision(precision);
}

}  // namespace ipu_model
