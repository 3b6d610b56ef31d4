// The second part of PJRT's interface: executables, buffers, and the table of all functions. See abi.hpp.
#pragma once

#include <array>

#include "pjrt/interface/abi.hpp"
#include "pjrt/interface/functions.hpp"

namespace snnjax::pjrt {

// Executables.
struct ExecutableDestroyArgs : Arguments {
  Executable* executable;
};
struct ExecutableNameArgs : Arguments {
  Executable* executable;
  const char* executable_name;
  std::size_t executable_name_size;
};
struct ExecutableNumReplicasArgs : Arguments {
  Executable* executable;
  std::size_t num_replicas;
};
struct ExecutableNumPartitionsArgs : Arguments {
  Executable* executable;
  std::size_t num_partitions;
};
struct ExecutableNumOutputsArgs : Arguments {
  Executable* executable;
  std::size_t num_outputs;
};
struct ExecutableSizeOfGeneratedCodeInBytesArgs : Arguments {
  Executable* executable;
  std::int64_t size_in_bytes;
};
struct ExecutableOutputMemoryKindsArgs : Arguments {
  Executable* executable;
  std::size_t num_outputs;
  const char* const* memory_kinds;
  const std::size_t* memory_kind_sizes;
};
struct ExecutableOutputElementTypesArgs : Arguments {
  Executable* executable;
  const int* output_types;
  std::size_t num_output_types;
};
struct ExecutableOutputDimensionsArgs : Arguments {
  Executable* executable;
  std::size_t num_outputs;
  const std::int64_t* dims;  // of all outputs, one after the other
  const std::size_t* dim_sizes;
};
struct ExecutableFingerprintArgs : Arguments {
  Executable* executable;
  const char* executable_fingerprint;
  std::size_t executable_fingerprint_size;
};
struct ExecutableGetCostAnalysisArgs : Arguments {
  Executable* executable;
  std::size_t num_properties;
  const NamedValue* properties;
};
struct ExecutableGetCompiledMemoryStatsArgs : Arguments {
  Executable* executable;
  std::int64_t generated_code_size_in_bytes, argument_size_in_bytes, output_size_in_bytes, alias_size_in_bytes,
      temp_size_in_bytes, host_generated_code_size_in_bytes, host_argument_size_in_bytes, host_output_size_in_bytes,
      host_alias_size_in_bytes, host_temp_size_in_bytes;
};
struct ExecutableSerializeArgs : Arguments {
  const Executable* executable;
  const char* serialized_bytes;
  std::size_t serialized_bytes_size;
  void* serialized_executable;  // what the bytes lie in, for the deleter
  void (*serialized_executable_deleter)(void*);
};
struct ExecutableDeserializeAndLoadArgs : Arguments {
  Client* client;
  const char* serialized_executable;
  std::size_t serialized_executable_size;
  LoadedExecutable* loaded_executable;
};

// The same, loaded onto devices.
struct LoadedExecutableDestroyArgs : Arguments {
  LoadedExecutable* executable;
};
struct LoadedExecutableGetExecutableArgs : Arguments {
  LoadedExecutable* loaded_executable;
  Executable* executable;
};
struct LoadedExecutableAddressableDevicesArgs : Arguments {
  LoadedExecutable* executable;
  Device* const* addressable_devices;
  std::size_t num_addressable_devices;
};
struct LogicalDeviceIds {
  int replica, partition;
};
struct LoadedExecutableAddressableDeviceLogicalIdsArgs : Arguments {
  LoadedExecutable* executable;
  const LogicalDeviceIds* addressable_device_logical_ids;
  std::size_t num_addressable_device_logical_ids;
};
struct LoadedExecutableGetDeviceAssignmentArgs : Arguments {
  LoadedExecutable* executable;
  const char* serialized_bytes;  // an xla.DeviceAssignmentProto
  std::size_t serialized_bytes_size;
  void* serialized_device_assignment;
  void (*serialized_device_assignment_deleter)(void*);
};
struct LoadedExecutableDeleteArgs : Arguments {
  LoadedExecutable* executable;
};
struct LoadedExecutableIsDeletedArgs : Arguments {
  LoadedExecutable* executable;
  bool is_deleted;
};
struct LoadedExecutableFingerprintArgs : Arguments {
  LoadedExecutable* executable;
  const char* executable_fingerprint;
  std::size_t executable_fingerprint_size;
};
struct ExecuteOptions : Arguments {
  void *send_callbacks, *recv_callbacks;
  std::size_t num_send_ops, num_recv_ops;
  int launch_id;
  const std::int64_t* non_donatable_input_indices;
  std::size_t num_non_donatable_input_indices;
};
struct LoadedExecutableExecuteArgs : Arguments {
  LoadedExecutable* executable;
  ExecuteOptions* options;
  Buffer* const* const* argument_lists;  // [num_devices][num_args]
  std::size_t num_devices;
  std::size_t num_args;
  Buffer** const* output_lists;    // [num_devices][outputs]
  Event** device_complete_events;  // [num_devices], or none asked for
  Device* execute_device;
};

// Buffers.
struct BufferDestroyArgs : Arguments {
  Buffer* buffer;
};
struct BufferElementTypeArgs : Arguments {
  Buffer* buffer;
  int type;
};
struct BufferDimensionsArgs : Arguments {
  Buffer* buffer;
  const std::int64_t* dims;
  std::size_t num_dims;
};
struct BufferUnpaddedDimensionsArgs : Arguments {
  Buffer* buffer;
  const std::int64_t* unpadded_dims;
  std::size_t num_dims;
};
struct BufferDynamicDimensionIndicesArgs : Arguments {
  Buffer* buffer;
  const std::size_t* dynamic_dim_indices;
  std::size_t num_dynamic_dims;
};
struct BufferOnDeviceSizeInBytesArgs : Arguments {
  Buffer* buffer;
  std::size_t on_device_size_in_bytes;
};
struct BufferDeviceArgs : Arguments {
  Buffer* buffer;
  Device* device;
};
struct BufferMemoryArgs : Arguments {
  Buffer* buffer;
  Memory* memory;
};
struct BufferDeleteArgs : Arguments {
  Buffer* buffer;
};
struct BufferIsDeletedArgs : Arguments {
  Buffer* buffer;
  bool is_deleted;
};
struct BufferCopyToDeviceArgs : Arguments {
  Buffer* buffer;
  Device* dst_device;
  Buffer* dst_buffer;
};
struct BufferCopyToMemoryArgs : Arguments {
  Buffer* buffer;
  Memory* dst_memory;
  Buffer* dst_buffer;
};
struct BufferToHostBufferArgs : Arguments {
  Buffer* src;
  void* host_layout;  // none: row-major
  void* dst;          // none: only the size is asked for
  std::size_t dst_size;
  Event* event;
};
struct BufferIsOnCpuArgs : Arguments {
  Buffer* buffer;
  bool is_on_cpu;
};
struct BufferReadyEventArgs : Arguments {
  Buffer* buffer;
  Event* event;
};
struct BufferUnsafePointerArgs : Arguments {
  Buffer* buffer;
  std::uintptr_t buffer_pointer;
};

// The shardings of a program for several devices, a serialised xla.OpSharding each.
struct ShardingsExecutableParameterShardingsArgs : Arguments {
  Executable* executable;
  std::size_t num_parameters;
  const char* const* shardings;
  const std::size_t* sharding_sizes;
};
struct ShardingsExecutableOutputShardingsArgs : Arguments {
  Executable* executable;
  std::size_t num_outputs;
  const char* const* shardings;
  const std::size_t* sharding_sizes;
};
using Function = Error* (*)(void* arguments);
struct ShardingsExtension {
  Extension base;
  Function parameter_shardings, output_shardings;
};

// The table of all functions, in the order of functions.hpp; those that return nothing are called alike.
struct Api {
  std::size_t struct_size;
  Extension* extension_start;
  Version pjrt_api_version;
  std::array<Function, kFunctions.size()> functions;
};

}  // namespace snnjax::pjrt
