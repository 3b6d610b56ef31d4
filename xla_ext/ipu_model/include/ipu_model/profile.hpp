// What an engine's runs would have cost on the chip: the model's own extension of Poplar, as plain numbers.
// Times are in tile clock cycles unless they say otherwise. Nothing of this was measured on hardware.
#pragma once

#include <cstdint>
#include <poplar/Engine.hpp>
#include <string>
#include <vector>

namespace ipu_model {

class JsonWriter;

struct PhaseCycles {
  std::uint64_t compute = 0;
  std::uint64_t exchange = 0;  // on the chip, and between IPUs
  std::uint64_t sync = 0;
  std::uint64_t host = 0;  // streams

  std::uint64_t total() const { return compute + exchange + sync + host; }
};

// The vertices of one class in one compute set, over all runs.
struct CodeletProfile {
  std::string name;
  std::uint64_t vertices = 0;  // in the compute set
  std::uint64_t count = 0;     // times that one ran
  std::uint64_t cycles = 0;    // of all of them, each alone on its tile
  std::uint64_t max = 0;       // of the longest
  std::uint64_t unknown = 0;   // runs of unknown cost, counted as nothing

  double mean() const {
    return count > unknown ? static_cast<double>(cycles) / static_cast<double>(count - unknown) : 0;
  }
};

struct ExchangeProfile {
  std::uint64_t cycles = 0;
  std::uint64_t bytes = 0;       // received, by all tiles
  std::uint64_t link_bytes = 0;  // that crossed between IPUs
  std::uint64_t messages = 0;    // received, by all tiles
};

struct ComputeSetProfile {
  std::string name;
  std::uint64_t position = 0;  // among all steps, in the order in which the programs come to them
  std::uint64_t executions = 0;
  std::uint64_t cycles = 0;       // of the slowest tile of each execution
  std::uint64_t max = 0;          // of the longest execution
  std::uint64_t tiles = 0;        // that have vertices
  std::uint64_t tile_cycles = 0;  // of all tiles of all executions
  std::uint64_t sync_cycles = 0;
  ExchangeProfile exchange;
  std::vector<CodeletProfile> codelets;

  // How busy tiles with vertices are, beside the slowest.
  double balance() const {
    return cycles > 0 && tiles > 0
               ? static_cast<double>(tile_cycles) / (static_cast<double>(cycles) * static_cast<double>(tiles))
               : 1;
  }
};

// A Copy, or a stream's.
struct CopyProfile {
  std::string name;
  std::uint64_t position = 0;
  std::uint64_t executions = 0;
  std::uint64_t sync_cycles = 0;
  std::uint64_t host_cycles = 0;
  ExchangeProfile exchange;  // of a stream: its reordering, and all its bytes
};

struct TileProfile {
  std::uint64_t cycles = 0;  // in which it computed
  std::uint64_t variables = 0, vertices = 0, code = 0, exchange_code = 0, buffers = 0, stacks = 0;  // bytes

  std::uint64_t memory() const { return variables + vertices + code + exchange_code + buffers + stacks; }
};

// The contents of the graph, for all replicas together.
struct GraphCounts {
  std::uint64_t vertices = 0, edges = 0, variables = 0, compute_sets = 0;
};

struct Profile {
  std::string chip;
  double clock_hz = 0;
  unsigned ipus = 0;  // of all replicas
  unsigned replicas = 1;
  unsigned tiles_per_ipu = 0;
  std::uint64_t memory_per_tile = 0;  // bytes that a tile has
  GraphCounts graph;
  PhaseCycles cycles;
  std::vector<std::uint64_t> waiting;  // by replica: cycles in which others work and it does not
  std::vector<ComputeSetProfile> compute_sets;
  std::vector<CopyProfile> copies;
  std::vector<CopyProfile> streams;
  std::vector<CodeletProfile> codelets;       // over all compute sets, the costliest first
  std::vector<std::string> unknown_codelets;  // whose vertices ran and have no known cost
  std::vector<TileProfile> tiles;

  double seconds() const { return static_cast<double>(cycles.total()) / clock_hz; }
};

// Of all runs since the engine was made, or since Engine::resetExecutionProfile().
Profile profileOf(const poplar::Engine& engine);

// The same as one JSON object, with the names of the fields; `tiles` says whether with its row for each tile.
std::string toJson(const Profile& profile, bool tiles = true);
// Its fields, in an object that is open.
void writeFields(JsonWriter& json, const Profile& profile, bool tiles = true);

// Tables to read, in the form of Poplar's summary; `steps` adds the compute sets that ran.
void printSummary(const Profile& profile, std::ostream& stream, bool steps = false);

}  // namespace ipu_model
