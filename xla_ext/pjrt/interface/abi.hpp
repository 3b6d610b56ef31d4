// The part of PJRT's C interface, version 0.96, that the plugin serves: the structures that a caller fills in and
// reads.
//
// Names are PJRT's: the arguments of PJRT_Buffer_Device are BufferDeviceArgs here, and their fields are named alike. A
// structure ends where the plugin stops reading: later versions only append. tests/ipu/device/test_abi.py compares
// sizes, offsets and the order of the functions with tables that were made from PJRT's own header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace snnjax::pjrt {

// What callers hold as pointers; each is defined in the file that makes it.
struct Error;
struct Event;
struct Client;
struct Device;
struct Memory;
struct Buffer;
struct Executable;
struct LoadedExecutable;
struct DeviceDescription;

struct Extension {
  std::size_t struct_size;
  int type;
  Extension* next;
};
constexpr int kShardingsExtension = 19;

// How every structure of arguments begins.
struct Arguments {
  std::size_t struct_size;  // to the end of the last field that the caller knows, without padding
  Extension* extension_start;
};

struct Version : Arguments {
  int major_version, minor_version;
};

struct NamedValue : Arguments {
  const char* name;
  std::size_t name_size;
  int type;
  union {
    const char* string_value;
    std::int64_t int64_value;
    const std::int64_t* int64_array_value;
    float float_value;
    bool bool_value;
  };
  std::size_t value_size;  // elements, of a string without its end; 1 for numbers
};
enum NamedValueType : int { kString, kInt64, kInt64List, kFloat, kBool };

struct Program : Arguments {
  const char* code;
  std::size_t code_size;
  const char* format;
  std::size_t format_size;
};

// Errors, the plugin, events.
struct ErrorDestroyArgs : Arguments {
  Error* error;
};
struct ErrorMessageArgs : Arguments {
  const Error* error;
  const char* message;
  std::size_t message_size;
};
struct ErrorGetCodeArgs : Arguments {
  const Error* error;
  int code;
};
struct PluginInitializeArgs : Arguments {};
struct PluginAttributesArgs : Arguments {
  const NamedValue* attributes;
  std::size_t num_attributes;
};
struct EventDestroyArgs : Arguments {
  Event* event;
};
struct EventIsReadyArgs : Arguments {
  Event* event;
  bool is_ready;
};
struct EventErrorArgs : EventDestroyArgs {};
struct EventAwaitArgs : EventDestroyArgs {};
using OnReady = void (*)(Error* error, void* user_arg);  // which owns the error
struct EventOnReadyArgs : Arguments {
  Event* event;
  OnReady callback;
  void* user_arg;
};

// Clients.
struct ClientCreateArgs : Arguments {
  const NamedValue* create_options;
  std::size_t num_options;
  void *kv_get_callback, *kv_get_user_arg, *kv_put_callback, *kv_put_user_arg;  // of programs on many hosts
  Client* client;
};
struct ClientDestroyArgs : Arguments {
  Client* client;
};
struct ClientPlatformNameArgs : Arguments {
  Client* client;
  const char* platform_name;
  std::size_t platform_name_size;
};
struct ClientProcessIndexArgs : Arguments {
  Client* client;
  int process_index;
};
struct ClientPlatformVersionArgs : Arguments {
  Client* client;
  const char* platform_version;
  std::size_t platform_version_size;
};
struct ClientDevicesArgs : Arguments {
  Client* client;
  Device* const* devices;
  std::size_t num_devices;
};
struct ClientAddressableDevicesArgs : Arguments {
  Client* client;
  Device* const* addressable_devices;
  std::size_t num_addressable_devices;
};
struct ClientLookupDeviceArgs : Arguments {
  Client* client;
  int id;
  Device* device;
};
struct ClientLookupAddressableDeviceArgs : Arguments {
  Client* client;
  int local_hardware_id;
  Device* addressable_device;
};
struct ClientAddressableMemoriesArgs : Arguments {
  Client* client;
  Memory* const* addressable_memories;
  std::size_t num_addressable_memories;
};
struct ClientCompileArgs : Arguments {
  Client* client;
  const Program* program;
  const char* compile_options;  // a serialised xla.CompileOptionsProto
  std::size_t compile_options_size;
  LoadedExecutable* executable;
};
struct ClientDefaultDeviceAssignmentArgs : Arguments {
  Client* client;
  int num_replicas, num_partitions;
  std::size_t default_assignment_size;
  int* default_assignment;
};
struct ClientBufferFromHostBufferArgs : Arguments {
  Client* client;
  const void* data;
  int type;
  const std::int64_t* dims;
  std::size_t num_dims;
  const std::int64_t* byte_strides;  // none: row-major
  std::size_t num_byte_strides;
  int host_buffer_semantics;
  Device* device;
  Memory* memory;
  void* device_layout;
  Event* done_with_host_buffer;
  Buffer* buffer;
};

// Devices and their memories.
struct DeviceDescriptionIdArgs : Arguments {
  DeviceDescription* device_description;
  int id;
};
struct DeviceDescriptionProcessIndexArgs : Arguments {
  DeviceDescription* device_description;
  int process_index;
};
struct DeviceDescriptionAttributesArgs : Arguments {
  DeviceDescription* device_description;
  std::size_t num_attributes;
  const NamedValue* attributes;
};
struct DeviceDescriptionKindArgs : Arguments {
  DeviceDescription* device_description;
  const char* device_kind;
  std::size_t device_kind_size;
};
struct DeviceDescriptionDebugStringArgs : Arguments {
  DeviceDescription* device_description;
  const char* debug_string;
  std::size_t debug_string_size;
};
struct DeviceDescriptionToStringArgs : Arguments {
  DeviceDescription* device_description;
  const char* to_string;
  std::size_t to_string_size;
};
struct DeviceGetDescriptionArgs : Arguments {
  Device* device;
  DeviceDescription* device_description;
};
struct DeviceIsAddressableArgs : Arguments {
  Device* device;
  bool is_addressable;
};
struct DeviceLocalHardwareIdArgs : Arguments {
  Device* device;
  int local_hardware_id;
};
struct DeviceAddressableMemoriesArgs : Arguments {
  Device* device;
  Memory* const* memories;
  std::size_t num_memories;
};
struct DeviceDefaultMemoryArgs : Arguments {
  Device* device;
  Memory* memory;
};
// Later fields follow, each with its own `is_set`.
struct DeviceMemoryStatsArgs : Arguments {
  Device* device;
  std::int64_t bytes_in_use;
  std::int64_t peak_bytes_in_use;
  bool peak_bytes_in_use_is_set;
  std::int64_t num_allocs;
  bool num_allocs_is_set;
  std::int64_t largest_alloc_size;
  bool largest_alloc_size_is_set;
  std::int64_t bytes_limit;
  bool bytes_limit_is_set;
  std::int64_t bytes_reserved;
  bool bytes_reserved_is_set;
  std::int64_t peak_bytes_reserved;
  bool peak_bytes_reserved_is_set;
  std::int64_t bytes_reservable_limit;
  bool bytes_reservable_limit_is_set;
  std::int64_t largest_free_block_bytes;
  bool largest_free_block_bytes_is_set;
};
struct DeviceGetAttributesArgs : Arguments {
  Device* device;
  const NamedValue* attributes;
  std::size_t num_attributes;
  void* device_attributes;
  void (*attributes_deleter)(void*);
};
struct MemoryIdArgs : Arguments {
  Memory* memory;
  int id;
};
struct MemoryKindArgs : Arguments {
  Memory* memory;
  const char* kind;
  std::size_t kind_size;
};
struct MemoryKindIdArgs : Arguments {
  Memory* memory;
  int kind_id;
};
struct MemoryDebugStringArgs : Arguments {
  Memory* memory;
  const char* debug_string;
  std::size_t debug_string_size;
};
struct MemoryToStringArgs : Arguments {
  Memory* memory;
  const char* to_string;
  std::size_t to_string_size;
};
struct MemoryAddressableByDevicesArgs : Arguments {
  Memory* memory;
  Device* const* devices;
  std::size_t num_devices;
};

}  // namespace snnjax::pjrt
