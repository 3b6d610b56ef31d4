// The counters of a running engine: integers, so that the order in which threads add them does not matter.
#pragma once

#include <cstdint>
#include <vector>

namespace ipu_model {

struct CodeletCounters {
  std::uint64_t count = 0;
  std::uint64_t unknown = 0;
  std::uint64_t cycles = 0;
  std::uint64_t max = 0;

  void add(const CodeletCounters& other) {
    count += other.count;
    unknown += other.unknown;
    cycles += other.cycles;
    max = max > other.max ? max : other.max;
  }
};

// Of the tiles that one thread ran in one execution.
struct alignas(64) ThreadCounters {
  std::vector<CodeletCounters> codelets;
  std::vector<std::uint64_t> slowest;  // tile of each active replica
  std::uint64_t tile_cycles = 0;       // of all its tiles
};

struct ComputeSetCounters {
  std::uint64_t executions = 0;
  std::uint64_t cycles = 0;
  std::uint64_t max = 0;
  std::uint64_t tile_cycles = 0;
  std::vector<CodeletCounters> codelets;
};

// Of a copy or a stream.
struct CopyCounters {
  std::uint64_t executions = 0;
  std::uint64_t host_cycles = 0, sync_cycles = 0;
};

struct Counters {
  std::vector<ComputeSetCounters> compute_sets;
  std::vector<CopyCounters> copies;
  std::vector<CopyCounters> streams;  // by the plan's host access
  std::vector<std::uint64_t> tile_cycles;
  std::vector<std::uint64_t> busy;  // by replica: cycles in which it takes part in what the clock counts
  std::uint64_t compute = 0, exchange = 0, sync = 0, host = 0;

  std::uint64_t clock() const { return compute + exchange + sync + host; }
};

}  // namespace ipu_model
