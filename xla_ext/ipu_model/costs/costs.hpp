// Costs in tile clock cycles: pure functions of a chip's table (chips/chip.hpp) and of plain numbers. The engine counts
// the work (issue slots of vertices, words between tiles, bytes from the host), these functions price it. Nothing here
// knows of graphs, tensors or engines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "chips/chip.hpp"

namespace ipu_model {

// ---- Compute: the vertices of one compute set on one tile (compute.cpp) ----

// Vertices are added in the order in which the program added them to the compute set. A worker issues once every
// `workers` (6) cycles, so a vertex of n issue slots takes 6 n cycles whatever else runs; a vertex goes to the worker
// that is free first; a MultiVertex starts when all of them are free and ends with its slowest worker.
class TileSchedule {
 public:
  explicit TileSchedule(const Chip& chip);
  // Vertex: `issue_slots` of its one worker.
  void addVertex(std::uint64_t issue_slots);
  // MultiVertex: `issue_slots[w]` of worker w; `supervisor_cycles` (tile cycles) in place of the launch's own.
  void addMultiVertex(std::span<const std::uint64_t> issue_slots, std::optional<std::uint64_t> supervisor_cycles = {});
  // SupervisorVertex, or a MultiVertex with setPerfEstimate: tile cycles in all, no other vertex beside it. The
  // estimate of a plain Vertex is its issue slots: as the vendor's model prints tutorial 6, 8 rounds of 77 make 3,696
  // cycles.
  void addSupervisorVertex(std::uint64_t tile_cycles);

  // From the start of the compute set to the end of its slowest worker, with launch and rendezvous; 0 without vertices.
  [[nodiscard]] std::uint64_t cycles() const;

 private:
  void joinWorkers(std::uint64_t then);

  const Chip* chip_;
  std::uint64_t free_at_[kMaxWorkers] = {};  // tile cycles, of each worker
  bool used_ = false;
};

// A copy within one tile: bytes in `pieces` contiguous runs.
std::uint64_t tileCopyCycles(const Chip& chip, std::uint64_t bytes, std::uint64_t pieces);

// ---- Exchange within an IPU (exchange.cpp, route.cpp) ----

// What one tile does in one exchange phase. Words are 32 bits.
struct TileTraffic {
  std::uint32_t tile = 0;        // logical, within its IPU
  std::uint64_t words_sent = 0;  // put on the exchange; a word that several tiles take counts once
  std::uint64_t words_received = 0;
  std::uint64_t paired_words_received =
      0;                                 // those of words_received that come 64 bits a cycle: pairedWords() of each run
  std::uint64_t fragments_sent = 0;      // contiguous runs in memory, one message each
  std::uint64_t fragments_received = 0;  // contiguous runs in memory from one source each
  std::int32_t route_cycles =
      0;  // the longest arrivalCycles(chip, source, tile) of its sources; 0 if it receives nothing
};

// Cycles from the sync's end until the last word of the phase is in memory; 0 if no tile sends.
std::uint64_t exchangeCycles(const Chip& chip, std::span<const TileTraffic> tiles);

// Of one run of `words` that both tiles of a pair take from the same source: how many travel 64 bits a cycle.
std::uint64_t pairedWords(const Chip& chip, std::uint64_t words);
// The other tile of a pair (tiles l and l ^ 1 share an exchange bus).
constexpr std::uint32_t pairedTile(std::uint32_t tile) { return tile ^ 1U; }

// Cycles from a word's leaving a tile until the receiver's input has to be switched to it, -78 to 112.
std::int32_t routeCycles(const Chip& chip, std::uint32_t source, std::uint32_t destination);
// Cycles from the sync's end until the first word of an isolated transfer is in memory: send instruction, route, way to
// memory.
std::int32_t arrivalCycles(const Chip& chip, std::uint32_t source, std::uint32_t destination);

// ---- Between IPUs (between.cpp) ----

// The words that cross the links in one phase, IPU by IPU; rows of `words` are sources: words[from * ipus + to].
std::uint64_t linkCycles(const Chip& chip, std::span<const std::uint64_t> words, std::uint32_t ipus);

// ---- Synchronisation (between.cpp) ----

// Before each exchange phase, of all tiles of an IPU. None is needed after it, nor between compute sets that exchange
// nothing: the exchange is timed when the program is compiled. (The workers of a tile meet within TileSchedule.)
std::uint64_t ipuSyncCycles(const Chip& chip);
std::uint64_t systemSyncCycles(const Chip& chip, std::uint32_t ipus);  // of several IPUs; of one: ipuSyncCycles

// ---- Host (between.cpp) ----

// A stream copy of `bytes` to or from one IPU in `requests` of the host: 0 if it shares another's request. Each begins
// and ends with a handshake.
std::uint64_t hostCycles(const Chip& chip, std::uint64_t bytes, std::uint64_t requests);
// This many rows of a remote buffer, `bytes` in all, without handshakes.
std::uint64_t remoteCycles(const Chip& chip, std::uint64_t bytes, std::uint64_t rows);

double seconds(const Chip& chip, std::uint64_t cycles);

}  // namespace ipu_model
