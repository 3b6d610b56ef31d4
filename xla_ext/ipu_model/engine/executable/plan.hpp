// Programs as the engine runs them, with every address, race and exchange resolved. Addresses are bytes into one block
// of host memory, the engine's, that holds all variables and after them what compute sets gather.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <poplar/PrintTensor.hpp>
#include <poplar/Target.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "chips/chip.hpp"
#include "codelets/vertex_type.hpp"
#include "engine/executable/moves.hpp"
#include "graph/graph_data.hpp"

namespace ipu_model {

// What one exchange phase costs, with the synchronisation before it.
struct ExchangeCost {
  std::uint64_t cycles = 0;
  std::uint64_t sync_cycles = 0;
  std::uint64_t bytes = 0;       // received, by all tiles
  std::uint64_t link_bytes = 0;  // that cross between IPUs
  std::uint64_t messages = 0;    // received, by all tiles
};

// ---- A compute set ----

// The address of a row of a field.
struct RowPlan {
  std::uint32_t field;
  std::size_t address;
  std::size_t elements;
};

struct VertexPlan {
  const VertexType* type;
  std::uint32_t codelet;  // index into ComputeSetPlan::codelets
  std::uint32_t first_row, rows;
  std::vector<MemberValue> members;
  std::optional<std::uint64_t> estimate;
};

struct TilePlan {
  std::uint32_t tile;
  std::uint32_t first_vertex, vertices;
};

struct ComputeSetPlan {
  std::string name;
  std::vector<VertexPlan> vertices;  // tile by tile
  std::vector<TilePlan> tiles;
  std::vector<RowPlan> rows;
  std::vector<const VertexType*> codelets;
  std::vector<Move> gathers;   // before: what is not in one piece, or written by another vertex
  std::vector<Move> scatters;  // after
  ExchangeCost before, after;
  std::uint64_t sync_cycles = 0;
};

// ---- Copies ----

// Consecutive copies, none of which reads or writes what another writes, are one: they share an exchange.
struct CopyPlan {
  std::string name;
  std::vector<Move> moves;
  std::vector<Move> then;  // after all of `moves`, which went to a buffer where a copy reads what it writes
  ExchangeCost cost;
};

// Between the host's memory and variables; addresses of the host count from 0. `moves` go to the device.
struct HostPlan {
  std::string name;
  std::vector<Move> moves;
  std::size_t bytes = 0;
  std::size_t ipu_bytes = 0;   // the most that goes to one IPU
  ExchangeCost rearrangement;  // of a stream, between its order and where the elements lie
};

// ---- Steps ----

using BlockId = std::uint32_t;

struct StepCompute {
  std::uint32_t compute_set;
};
struct StepCopy {
  std::uint32_t copy;
};
// From one replica to another: `from` and `to` are host accesses of theirs, through which the elements go. Consecutive
// ones, none of which touches what another writes, are one. The plan's copy itself has no moves.
struct StepCrossReplica {
  struct Part {
    std::uint32_t from, to;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> replicas;
  };
  std::uint32_t copy;
  std::vector<Part> parts;
};
struct StepStream {
  std::uint32_t stream;
  std::uint32_t host;
  bool to_host;
  bool joins;  // the request of the copy before
};
struct StepRemote {
  std::uint32_t buffer;
  std::uint32_t host;
  std::uint32_t offsets;
  std::size_t rows;
  bool to_host;
};
struct StepRepeat {
  std::uint32_t count;
  BlockId body;
};
struct StepWhile {
  BlockId condition;
  std::uint32_t predicate;
  BlockId body;
  bool until;
};
struct StepSwitch {
  std::uint32_t control;
  std::vector<std::pair<std::int32_t, BlockId>> cases;
  BlockId otherwise;
};
struct StepCall {
  std::uint32_t function;
};
struct StepHostCall {
  std::uint32_t function;
  std::vector<std::uint32_t> inputs, outputs;
};
struct StepSync {
  std::uint64_t cycles;
};
struct StepPrint {
  std::string title;
  std::uint32_t host;
  poplar::Type type;
  std::vector<std::size_t> shape;
  poplar::PrintTensorFmt format;
};
struct StepError {
  std::string message;
  std::uint32_t predicate;
  std::optional<StepPrint> printed;
};
struct StepStamp {
  std::uint32_t host;
  bool difference;
};

using Step = std::variant<StepCompute, StepCopy, StepCrossReplica, StepStream, StepRemote, StepRepeat, StepWhile,
                          StepSwitch, StepCall, StepHostCall, StepSync, StepPrint, StepError, StepStamp>;
using Block = std::vector<Step>;

inline constexpr std::uint32_t kNothing = 0xffffffffU;

// ---- Memory of one tile, in bytes ----

struct TileBytes {
  std::uint64_t variables = 0;
  std::uint64_t vertices = 0;  // records, edge pointers and values of their own
  std::uint64_t code = 0;
  std::uint64_t exchange_code = 0;
  std::uint64_t buffers = 0;  // of what arrives for the phase that needs most
  std::uint64_t stacks = 0;   // of the workers, where there are vertices

  std::uint64_t total() const { return variables + vertices + code + exchange_code + buffers + stacks; }
};

struct InitialPlan {
  std::vector<Move> moves;  // from `bytes`
  std::vector<std::byte> bytes;
};

// The size of the graph.
struct GraphSizes {
  std::uint64_t vertices = 0, edges = 0, variables = 0, compute_sets = 0;
};

struct Plan {
  std::shared_ptr<GraphData>
      graph;  // a plan that was read from a stream: the ends of streams, buffers, functions alone
  GraphSizes sizes;
  poplar::Target target;  // of one replica
  std::uint32_t replicas = 1;
  std::size_t variable_bytes = 0;
  std::size_t scratch_bytes = 0;
  std::vector<InitialPlan> initial;
  std::vector<std::size_t> replica_numbers;  // addresses of 32-bit words that hold the replica's number
  std::vector<ComputeSetPlan> compute_sets;
  std::vector<CopyPlan> copies;
  std::vector<HostPlan> host;  // of streams, predicates, prints and host reads and writes
  std::vector<Block> blocks;
  std::vector<BlockId> programs, functions;
  std::unordered_map<std::string, std::uint32_t> host_writes, host_reads;
  std::vector<TileBytes> memory;  // by tile of one replica
};

}  // namespace ipu_model
