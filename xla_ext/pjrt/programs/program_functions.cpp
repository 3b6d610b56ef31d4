// What JAX asks about programs.
#include <numeric>

#include "pjrt/interface/table.hpp"
#include "pjrt/programs/program.hpp"

namespace snnjax::pjrt {
namespace {

std::size_t bytesOf(const executor::Plan& plan, const std::vector<executor::ValueId>& values) {
  return std::accumulate(values.begin(), values.end(), std::size_t{0},
                         [&plan](std::size_t sum, auto value) { return sum + plan.types[value].numBytes(); });
}

// Bytes of the tile memory of one IPU, with the parts for arguments and results.
void memoryStats(ExecutableGetCompiledMemoryStatsArgs& args) {
  const CompiledProgram& program = *args.executable->program;
  const executor::Plan& plan = program.plan();
  std::size_t alias = 0;
  for (const auto& [parameter, result] : plan.aliases) alias += program.parameter(parameter).numBytes();
  const std::size_t arguments = bytesOf(plan, plan.main.parameters), results = bytesOf(plan, plan.main.results);
  const auto all = static_cast<std::size_t>(program.tile_memory);
  const std::size_t arrays = arguments + results - alias;
  args.generated_code_size_in_bytes = 0;  // part of what is temporary: all tiles have the same copy
  args.argument_size_in_bytes = static_cast<std::int64_t>(arguments);
  args.output_size_in_bytes = static_cast<std::int64_t>(results);
  args.alias_size_in_bytes = static_cast<std::int64_t>(alias);
  args.temp_size_in_bytes = static_cast<std::int64_t>(all > arrays ? all - arrays : 0);
  args.host_generated_code_size_in_bytes = args.host_argument_size_in_bytes = args.host_output_size_in_bytes =
      args.host_alias_size_in_bytes = args.host_temp_size_in_bytes = 0;
}

void addExecutableFunctions(Table& table) {
  table.add("Executable_Destroy", [](ExecutableDestroyArgs& args) { delete args.executable; });
  table.add("Executable_Name", [](ExecutableNameArgs& args) {
    const std::string& name = args.executable->program->plan().name;
    args.executable_name = name.data();
    args.executable_name_size = name.size();
  });
  table.add("Executable_NumReplicas", [](ExecutableNumReplicasArgs& args) { args.num_replicas = 1; });
  table.add("Executable_NumPartitions",
            [](ExecutableNumPartitionsArgs& args) { args.num_partitions = args.executable->program->devices.size(); });
  table.add("Executable_NumOutputs",
            [](ExecutableNumOutputsArgs& args) { args.num_outputs = args.executable->program->numResults(); });
  table.add("Executable_SizeOfGeneratedCodeInBytes",
            [](ExecutableSizeOfGeneratedCodeInBytesArgs& args) { args.size_in_bytes = 0; });
  table.add("Executable_Fingerprint", [](ExecutableFingerprintArgs& args) {
    const std::string& fingerprint = args.executable->program->fingerprint;
    args.executable_fingerprint = fingerprint.data();
    args.executable_fingerprint_size = fingerprint.size();
  });
  table.add("Executable_GetCostAnalysis", [](ExecutableGetCostAnalysisArgs& args) {
    args.properties = args.executable->program->cost.data();
    args.num_properties = args.executable->program->cost.size();
  });
  table.add("Executable_GetCompiledMemoryStats", [](ExecutableGetCompiledMemoryStatsArgs& args) { memoryStats(args); });
}

void addResultFunctions(Table& table) {
  table.add("Executable_OutputMemoryKinds", [](ExecutableOutputMemoryKindsArgs& args) {
    const Texts& kinds = args.executable->program->memory_kinds;
    args.num_outputs = kinds.data.size();
    args.memory_kinds = kinds.data.data();
    args.memory_kind_sizes = kinds.sizes.data();
  });
  table.add("Executable_OutputElementTypes", [](ExecutableOutputElementTypesArgs& args) {
    args.output_types = args.executable->program->result_dtypes.data();
    args.num_output_types = args.executable->program->result_dtypes.size();
  });
  table.add("Executable_OutputDimensions", [](ExecutableOutputDimensionsArgs& args) {
    args.num_outputs = args.executable->program->result_ranks.size();
    args.dims = args.executable->program->result_dims.data();
    args.dim_sizes = args.executable->program->result_ranks.data();
  });
}

void addLoadedFunctions(Table& table) {
  table.add("LoadedExecutable_Destroy", [](LoadedExecutableDestroyArgs& args) { delete args.executable; });
  table.add("LoadedExecutable_GetExecutable", [](LoadedExecutableGetExecutableArgs& args) {
    args.executable = new Executable{args.loaded_executable->program};
  });
  table.add("LoadedExecutable_AddressableDevices", [](LoadedExecutableAddressableDevicesArgs& args) {
    args.addressable_devices = args.executable->program->devices.data();
    args.num_addressable_devices = args.executable->program->devices.size();
  });
  table.add("LoadedExecutable_AddressableDeviceLogicalIds", [](LoadedExecutableAddressableDeviceLogicalIdsArgs& args) {
    args.addressable_device_logical_ids = args.executable->program->logical_ids.data();
    args.num_addressable_device_logical_ids = args.executable->program->logical_ids.size();
  });
  table.add("LoadedExecutable_GetDeviceAssignment", [](LoadedExecutableGetDeviceAssignmentArgs& args) {
    args.serialized_bytes = args.executable->program->device_assignment.data();
    args.serialized_bytes_size = args.executable->program->device_assignment.size();
    args.serialized_device_assignment = nullptr;
    args.serialized_device_assignment_deleter = [](void*) {};
  });
  table.add("LoadedExecutable_Fingerprint", [](LoadedExecutableFingerprintArgs& args) {
    args.executable_fingerprint = args.executable->program->fingerprint.data();
    args.executable_fingerprint_size = args.executable->program->fingerprint.size();
  });
  table.add("LoadedExecutable_Delete", [](LoadedExecutableDeleteArgs& args) { args.executable->is_deleted = true; });
  table.add("LoadedExecutable_IsDeleted",
            [](LoadedExecutableIsDeletedArgs& args) { args.is_deleted = args.executable->is_deleted; });
}

}  // namespace

Extension* shardingsExtension() {
  static ShardingsExtension extension = {{sizeof(ShardingsExtension), kShardingsExtension, nullptr},
                                         toFunction([](ShardingsExecutableParameterShardingsArgs& args) {
                                           const Texts& shardings = args.executable->program->parameter_shardings;
                                           args.num_parameters = shardings.data.size();
                                           args.shardings = shardings.data.empty() ? nullptr : shardings.data.data();
                                           args.sharding_sizes = shardings.sizes.data();
                                         }),
                                         toFunction([](ShardingsExecutableOutputShardingsArgs& args) {
                                           const Texts& shardings = args.executable->program->result_shardings;
                                           args.num_outputs = shardings.data.size();
                                           args.shardings = shardings.data.empty() ? nullptr : shardings.data.data();
                                           args.sharding_sizes = shardings.sizes.data();
                                         })};
  return &extension.base;
}

void addProgramFunctions(Table& table) {
  addExecutableFunctions(table);
  addResultFunctions(table);
  addLoadedFunctions(table);
}

}  // namespace snnjax::pjrt
