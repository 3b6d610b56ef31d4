// The IPUs of a client, and the memory of each: its tiles'.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pjrt/interface/abi.hpp"

namespace poplar {
class Target;
}

namespace snnjax::pjrt {

class Table;
struct CompiledProgram;

constexpr std::string_view kMemoryKind = "device";

struct DeviceDescription {
  int id = 0;
  std::string kind, debug_string, to_string;
  std::vector<NamedValue> attributes;
};

struct Memory {
  void* functions = nullptr;  // of PJRT 0.106 and newer, which callers look for in the first word
  Device* device = nullptr;
};

struct Device {
  // `chip`: the version that the client was made with, which lives as long as the device.
  Device(Client* owner, int id, const std::string& chip, const poplar::Target& target);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Records the bytes of tile memory that the loaded program takes, until another is loaded or it is destroyed.
  void load(const CompiledProgram* program, std::int64_t tile_memory);
  void unload(const CompiledProgram* program);

  Client* client;
  DeviceDescription description;
  Memory memory;
  Device* self = this;  // lists of one
  Memory* memory_pointer = &memory;
  std::int64_t memory_limit;
  std::atomic<std::int64_t> bytes_in_use = 0, peak_bytes_in_use = 0;
  std::atomic<std::int64_t> num_buffers = 0;

 private:
  const CompiledProgram* loaded_ = nullptr;  // used only by tasks of the queue
};

void addDeviceFunctions(Table& table);

}  // namespace snnjax::pjrt
