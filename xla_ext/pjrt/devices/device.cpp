#include "pjrt/devices/device.hpp"

#include <algorithm>
#include <poplar/Target.hpp>
#include <string_view>

#include "pjrt/interface/named_value.hpp"
#include "pjrt/interface/table.hpp"

namespace snnjax::pjrt {
namespace {

constexpr std::string_view kMemoryName = "tile memory";

// A program is one allocation, and the tiles of an IPU count as one block of memory; nothing else is reserved.
// Structures of newer callers have more statistics than the plugin knows; each says whether it is set.
void memoryStats(DeviceMemoryStatsArgs& args) {
  auto* first = reinterpret_cast<char*>(&args.bytes_in_use);
  std::fill(first, reinterpret_cast<char*>(&args) + args.struct_size, '\0');
  args.bytes_in_use = args.device->bytes_in_use;
  args.peak_bytes_in_use = args.device->peak_bytes_in_use;
  args.num_allocs = args.device->num_buffers;
  args.largest_alloc_size = args.peak_bytes_in_use;
  args.bytes_limit = args.bytes_reservable_limit = args.device->memory_limit;
  args.largest_free_block_bytes = args.bytes_limit - args.bytes_in_use;
  args.peak_bytes_in_use_is_set = args.num_allocs_is_set = args.largest_alloc_size_is_set = args.bytes_limit_is_set =
      args.bytes_reserved_is_set = args.peak_bytes_reserved_is_set = args.bytes_reservable_limit_is_set =
          args.largest_free_block_bytes_is_set = true;
}

void addDescriptionFunctions(Table& table) {
  table.add("DeviceDescription_Id", [](DeviceDescriptionIdArgs& args) { args.id = args.device_description->id; });
  table.add("DeviceDescription_ProcessIndex", [](DeviceDescriptionProcessIndexArgs& args) { args.process_index = 0; });
  table.add("DeviceDescription_Attributes", [](DeviceDescriptionAttributesArgs& args) {
    args.attributes = args.device_description->attributes.data();
    args.num_attributes = args.device_description->attributes.size();
  });
  table.add("DeviceDescription_Kind", [](DeviceDescriptionKindArgs& args) {
    args.device_kind = args.device_description->kind.data();
    args.device_kind_size = args.device_description->kind.size();
  });
  table.add("DeviceDescription_DebugString", [](DeviceDescriptionDebugStringArgs& args) {
    args.debug_string = args.device_description->debug_string.data();
    args.debug_string_size = args.device_description->debug_string.size();
  });
  table.add("DeviceDescription_ToString", [](DeviceDescriptionToStringArgs& args) {
    args.to_string = args.device_description->to_string.data();
    args.to_string_size = args.device_description->to_string.size();
  });
}

void addMemoryFunctions(Table& table) {
  table.add("Memory_Id", [](MemoryIdArgs& args) { args.id = args.memory->device->description.id; });
  table.add("Memory_Kind_Id", [](MemoryKindIdArgs& args) { args.kind_id = 0; });
  table.add("Memory_Kind", [](MemoryKindArgs& args) {
    args.kind = kMemoryKind.data();
    args.kind_size = kMemoryKind.size();
  });
  table.add("Memory_DebugString", [](MemoryDebugStringArgs& args) {
    args.debug_string = kMemoryName.data();
    args.debug_string_size = kMemoryName.size();
  });
  table.add("Memory_ToString", [](MemoryToStringArgs& args) {
    args.to_string = kMemoryName.data();
    args.to_string_size = kMemoryName.size();
  });
  table.add("Memory_AddressableByDevices", [](MemoryAddressableByDevicesArgs& args) {
    args.devices = &args.memory->device->self;
    args.num_devices = 1;
  });
}

}  // namespace

Device::Device(Client* owner, int id, const std::string& chip, const poplar::Target& target)
    : client(owner), memory_limit(static_cast<std::int64_t>(target.getMemoryBytes())) {
  memory.device = this;
  const std::string number = std::to_string(id);
  description.id = id;
  description.kind = "IPU Model (" + chip + ")";
  description.debug_string = "ipu:" + number;
  description.to_string = "IpuDevice(id=" + number + ")";
  description.attributes = {
      named("chip", chip),
      named("num_tiles", std::int64_t{target.getNumTiles()}),
      named("memory_per_tile", static_cast<std::int64_t>(target.getBytesPerTile())),
      named("clock_hz", static_cast<std::int64_t>(target.getTileClockFrequency())),
  };
}

void Device::load(const CompiledProgram* program, std::int64_t tile_memory) {
  loaded_ = program;
  bytes_in_use = tile_memory;
  peak_bytes_in_use = std::max<std::int64_t>(peak_bytes_in_use, tile_memory);
}

void Device::unload(const CompiledProgram* program) {
  if (loaded_ == program) load(nullptr, 0);
}

void addDeviceFunctions(Table& table) {
  addDescriptionFunctions(table);
  addMemoryFunctions(table);
  table.add("Device_GetDescription",
            [](DeviceGetDescriptionArgs& args) { args.device_description = &args.device->description; });
  table.add("Device_IsAddressable", [](DeviceIsAddressableArgs& args) { args.is_addressable = true; });
  table.add("Device_LocalHardwareId",
            [](DeviceLocalHardwareIdArgs& args) { args.local_hardware_id = args.device->description.id; });
  table.add("Device_AddressableMemories", [](DeviceAddressableMemoriesArgs& args) {
    args.memories = &args.device->memory_pointer;
    args.num_memories = 1;
  });
  table.add("Device_DefaultMemory", [](DeviceDefaultMemoryArgs& args) { args.memory = &args.device->memory; });
  table.add("Device_MemoryStats", [](DeviceMemoryStatsArgs& args) { memoryStats(args); });
  table.add("Device_GetAttributes", [](DeviceGetAttributesArgs& args) {
    args.attributes = args.device->description.attributes.data();
    args.num_attributes = args.device->description.attributes.size();
    args.device_attributes = nullptr;
    args.attributes_deleter = [](void*) {};
  });
}

}  // namespace snnjax::pjrt
