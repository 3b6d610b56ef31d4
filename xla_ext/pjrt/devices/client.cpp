#include "pjrt/devices/client.hpp"

#include <algorithm>
#include <mutex>
#include <poplar/Target.hpp>
#include <set>
#include <string_view>

#include "pjrt/devices/host_callback.hpp"
#include "pjrt/interface/errors.hpp"
#include "pjrt/interface/table.hpp"

namespace snnjax::pjrt {
namespace {

constexpr std::string_view kPlatformName = "ipu";
// A pod of 64; larger ones have several hosts.
constexpr std::int64_t kMostDevices = 64;
constexpr std::int64_t kMostTiles = 1 << 16;

struct Clients {
  std::mutex mutex;
  std::set<Client*> all;
};

Clients& clients() {
  static auto& clients = *new Clients;  // never destroyed: clients may outlive everything else
  return clients;
}

std::int64_t numberFrom(const NamedValue& value, const std::string& name, std::int64_t least, std::int64_t most) {
  const std::string expected = "be an integer from " + std::to_string(least) + " to " + std::to_string(most);
  if (value.type != kInt64) refuse("ipu", name, expected, "another type", "Give a number");
  if (value.int64_value < least || value.int64_value > most) {
    refuse("ipu", name, expected, std::to_string(value.int64_value), "Give fewer, or more");
  }
  return value.int64_value;
}

executor::SystemOptions optionsFrom(const NamedValue* values, std::size_t size) {
  executor::SystemOptions options;
  for (std::size_t i = 0; i < size; ++i) {
    const NamedValue& value = values[i];
    const std::string name(value.name, value.name_size);
    if (name == "num_devices") {
      options.num_devices = static_cast<std::size_t>(numberFrom(value, name, 1, kMostDevices));
    } else if (name == "num_tiles") {
      options.num_tiles = static_cast<std::size_t>(numberFrom(value, name, 0, kMostTiles));
    } else if (name == "version" && value.type == kString) {
      options.version.assign(value.string_value, value.value_size);
    } else {
      refuse("ipu", "options", "be among num_devices, num_tiles and version", name, "Leave it out");
    }
  }
  return options;
}

// One IPU of the client.
poplar::Target targetOf(const executor::SystemOptions& options) {
  if (std::ranges::find(executor::kVersions, options.version) == executor::kVersions.end()) {
    refuse("ipu", "version", "be mk1, mk2, bow or c600", options.version, "Set SNNJAX_IPU_VERSION to one of them");
  }
  const auto whole = poplar::Target::createIPUTarget(1, options.version);
  if (options.num_tiles > whole.getNumTiles()) {
    refuse("ipu", "num_tiles", "be at most the " + std::to_string(whole.getNumTiles()) + " of " + options.version,
           std::to_string(options.num_tiles), "Set SNNJAX_IPU_TILES to fewer");
  }
  if (options.num_tiles == 0) return whole;
  return poplar::Target::createIPUTarget(1, static_cast<unsigned>(options.num_tiles), options.version);
}

}  // namespace

Client::Client(executor::SystemOptions options)
    : chip(options.version),
      platform_version("IPU Model of snnjax (" + chip + "): nothing of it has run on IPU hardware") {
  const poplar::Target target = targetOf(options);
  system = std::make_shared<executor::System>(options);
  system->setHostCallback(callHost);
  for (std::size_t id = 0; id < options.num_devices; ++id) {
    owned_devices.push_back(std::make_unique<Device>(this, static_cast<int>(id), chip, target));
    devices.push_back(owned_devices.back().get());
    memories.push_back(&owned_devices.back()->memory);
  }
  const std::lock_guard lock(clients().mutex);
  clients().all.insert(this);
}

Client::~Client() {
  const std::lock_guard lock(clients().mutex);
  clients().all.erase(this);
}

Device& Client::device(std::int64_t id) const {
  if (id < 0 || id >= static_cast<std::int64_t>(devices.size())) {
    throw Failure(ErrorCode::kInvalidArgument, "ipu: `device` must be one of " + std::to_string(devices.size()) +
                                                   ", got " + std::to_string(id) +
                                                   ". Set SNNJAX_IPU_DEVICES to have more.");
  }
  return *devices[static_cast<std::size_t>(id)];
}

void addClientFunctions(Table& table) {
  table.add("Client_Create", [](ClientCreateArgs& args) {
    args.client = new Client(optionsFrom(args.create_options, args.num_options));
  });
  table.add("Client_Destroy", [](ClientDestroyArgs& args) { delete args.client; });
  table.add("Client_PlatformName", [](ClientPlatformNameArgs& args) {
    args.platform_name = kPlatformName.data();
    args.platform_name_size = kPlatformName.size();
  });
  table.add("Client_PlatformVersion", [](ClientPlatformVersionArgs& args) {
    args.platform_version = args.client->platform_version.data();
    args.platform_version_size = args.client->platform_version.size();
  });
  table.add("Client_ProcessIndex", [](ClientProcessIndexArgs& args) { args.process_index = 0; });
  table.add("Client_Devices", [](ClientDevicesArgs& args) {
    args.devices = args.client->devices.data();
    args.num_devices = args.client->devices.size();
  });
  table.add("Client_AddressableDevices", [](ClientAddressableDevicesArgs& args) {
    args.addressable_devices = args.client->devices.data();
    args.num_addressable_devices = args.client->devices.size();
  });
  table.add("Client_LookupDevice", [](ClientLookupDeviceArgs& args) { args.device = &args.client->device(args.id); });
  table.add("Client_LookupAddressableDevice", [](ClientLookupAddressableDeviceArgs& args) {
    args.addressable_device = &args.client->device(args.local_hardware_id);
  });
  table.add("Client_AddressableMemories", [](ClientAddressableMemoriesArgs& args) {
    args.addressable_memories = args.client->memories.data();
    args.num_addressable_memories = args.client->memories.size();
  });
  // One replica; the partitions are the first IPUs in their order.
  table.add("Client_DefaultDeviceAssignment", [](ClientDefaultDeviceAssignmentArgs& args) {
    const auto wanted = static_cast<std::size_t>(args.num_replicas) * static_cast<std::size_t>(args.num_partitions);
    if (wanted > args.default_assignment_size || wanted > args.client->devices.size()) {
      refuse("ipu", "num_partitions", "be at most " + std::to_string(args.client->devices.size()),
             std::to_string(wanted), "Set SNNJAX_IPU_DEVICES to have more IPUs");
    }
    for (std::size_t i = 0; i < wanted; ++i) args.default_assignment[i] = static_cast<int>(i);
  });
}

}  // namespace snnjax::pjrt

void snnjax_ipu_finish() {
  auto& clients = snnjax::pjrt::clients();
  const std::lock_guard lock(clients.mutex);
  for (auto* client : clients.all) client->queue.drain();
}
