// A compiled program: what JAX queries, and what runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/executable.hpp"
#include "pjrt/devices/client.hpp"
#include "pjrt/interface/abi_programs.hpp"

namespace snnjax::pjrt {

// Texts as PJRT takes them: pointers, and their sizes.
struct Texts {
  explicit Texts(const std::vector<std::string>& texts);
  std::vector<const char*> data;
  std::vector<std::size_t> sizes;
};

struct CompiledProgram {
  // Builds it for the IPUs that the plan names. Throws if that fails.
  CompiledProgram(Client& owner, std::span<const std::byte> plan, std::string unique_fingerprint);
  CompiledProgram(const CompiledProgram&) = delete;
  CompiledProgram& operator=(const CompiledProgram&) = delete;
  ~CompiledProgram();

  const executor::Plan& plan() const { return executable.plan(); }
  // Types as JAX knows them.
  const executor::ArrayType& parameter(std::size_t number) const { return parameters[number]; }
  const executor::ArrayType& result(std::size_t number) const { return results[number]; }
  std::size_t numParameters() const { return parameters.size(); }
  std::size_t numResults() const { return results.size(); }

  Client& client;
  executor::Executable executable;
  std::vector<executor::ArrayType> parameters, results;
  std::string fingerprint;       // unique among the programs alive in this process
  std::vector<Device*> devices;  // of each partition
  std::vector<LogicalDeviceIds> logical_ids;
  std::string device_assignment;  // a serialised xla.DeviceAssignmentProto
  std::vector<bool> donated;      // of each parameter
  std::int64_t tile_memory;       // bytes of one IPU
  std::vector<NamedValue> cost;   // under XLA's names
  std::vector<int> result_dtypes;
  std::vector<std::int64_t> result_dims;
  std::vector<std::size_t> result_ranks;
  Texts memory_kinds, parameter_shardings, result_shardings;
  std::atomic<bool> is_short = false;  // its last run took less time than waking a thread
};

class Table;

struct Executable {
  std::shared_ptr<CompiledProgram> program;
};

struct LoadedExecutable {
  std::shared_ptr<CompiledProgram> program;
  std::atomic<bool> is_deleted = false;
};

void addProgramFunctions(Table& table);
Extension* shardingsExtension();

}  // namespace snnjax::pjrt
