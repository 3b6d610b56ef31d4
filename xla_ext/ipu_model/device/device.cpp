// Poplar's Device, DeviceManager, IPUModel and OptionFlags.
#include <cstdlib>
#include <poplar/DeviceManager.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/exceptions.hpp>

#include "chips/chip.hpp"

namespace poplar {
namespace {

constexpr unsigned kDefaultIpus = 16;  // a POD16, the largest system of the published figures (ipu.md 1.4)

unsigned numberFromEnvironment(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const unsigned long number = std::strtoul(text, &end, 10);
  if (*end != '\0' || number == 0 || number > 1U << 20U) {
    throw no_environment(std::string("DeviceManager: `") + name + "` must be a positive number, got \"" + text +
                         "\". Leave it unset for the default.");
  }
  return static_cast<unsigned>(number);
}

const ipu_model::Chip& chipOfEnvironment() {
  const char* name = std::getenv("SNNJAX_IPU_VERSION");
  return ipu_model::chipNamed(name == nullptr || *name == '\0' ? "mk2" : name);
}

unsigned numIpus() { return numberFromEnvironment("SNNJAX_IPU_DEVICES", kDefaultIpus); }

Device modelledDevice(unsigned id, TargetType type, unsigned ipus) {
  const ipu_model::Chip& chip = chipOfEnvironment();
  const unsigned tiles = numberFromEnvironment("SNNJAX_IPU_TILES", chip.tiles);
  if (type == TargetType::CPU) return {id, Target::createCPUTarget(true, ipus)};
  return {id, Target(chip, TargetType::IPU_MODEL, ipus, tiles)};
}

}  // namespace

bool Device::attach() const {
  attached_ = true;
  return true;
}
void Device::detach() const { attached_ = false; }

Device Device::createCPUDevice(unsigned numIPUs) { return {0, Target::createCPUTarget(true, numIPUs)}; }

std::map<std::string, std::string> Device::getAttributes() const {
  return {{"model", "true"}, {"chip", target_.getTargetSystemString()}};
}

std::vector<unsigned> Device::getDriverIDs() const {
  std::vector<unsigned> ids;
  for (unsigned ipu = 0; ipu < target_.getNumIPUs(); ++ipu) ids.push_back(id_ + ipu);
  return ids;
}

Device Device::createVirtualDevice(unsigned tilesPerIPU) const {
  return {id_, target_.createVirtualTarget(target_.getNumIPUs(), tilesPerIPU)};
}

std::size_t DeviceManager::getNumDevices() const { return getDevices().size(); }

// As the vendor's manager numbers them: each IPU alone first, then the groups of 2, 4, ...
std::vector<Device> DeviceManager::getDevices(const OptionFlags&) const {
  std::vector<Device> devices;
  for (unsigned size = 1; size <= numIpus(); size *= 2) {
    for (unsigned first = 0; first + size <= numIpus(); first += size) {
      devices.push_back(modelledDevice(static_cast<unsigned>(devices.size()), TargetType::IPU, size));
    }
  }
  return devices;
}

std::vector<Device> DeviceManager::getDevices(TargetType type, unsigned requiredNumIPUs, const OptionFlags&) const {
  if (type == TargetType::CPU) return {Device::createCPUDevice(requiredNumIPUs)};
  std::vector<Device> devices;
  for (const Device& device : getDevices()) {
    if (device.getTarget().getNumIPUs() == requiredNumIPUs) devices.push_back(device);
  }
  return devices;
}

std::vector<unsigned> DeviceManager::getDeviceIds() const {
  std::vector<unsigned> ids;
  for (const Device& device : getDevices()) ids.push_back(device.getId());
  return ids;
}

Device DeviceManager::getDevice(unsigned deviceManagerId, const OptionFlags&) const {
  const std::vector<Device> devices = getDevices();
  if (deviceManagerId < devices.size()) return devices[deviceManagerId];
  throw poplar_error("getDevice: `deviceManagerId` must be below " + std::to_string(devices.size()) + ", got " +
                     std::to_string(deviceManagerId) + ". SNNJAX_IPU_DEVICES says how many IPUs there are.");
}

Device DeviceManager::acquireAvailableDevice(unsigned numIPUs, const OptionFlags& opts) const {
  return acquireAvailableDevice(TargetType::IPU, numIPUs, opts);
}

Device DeviceManager::acquireAvailableDevice(TargetType type, unsigned numIPUs, const OptionFlags& opts) const {
  const std::vector<Device> devices = getDevices(type, numIPUs, opts);
  if (devices.empty()) {
    throw poplar_error("acquireAvailableDevice: `numIPUs` must be a power of 2 of at most " +
                       std::to_string(numIpus()) + ", got " + std::to_string(numIPUs) +
                       ". SNNJAX_IPU_DEVICES says how many IPUs there are.");
  }
  devices[0].attach();
  return devices[0];
}

Device DeviceManager::acquireDeviceById(unsigned deviceId, const OptionFlags& opts) const {
  Device device = getDevice(deviceId, opts);
  device.attach();
  return device;
}

IPUModel::IPUModel(const char* version) : IPUVersion(version) {
  const ipu_model::Chip& chip = ipu_model::chipNamed(version);
  tilesPerIPU = chip.tiles;
  memoryBytesPerTile = chip.tile_memory;
  numWorkerContexts = chip.workers;
  tileClockFrequency = chip.clock_hz;
  exchangeBytesPerCycle = chip.exchange_bytes_per_cycle;
  memcpyBytesPerCycle = chip.copy_bytes_per_cycle;
  interleavedMemoryElementIndex = chip.interleaved_from / chip.memory_element;
}

Device IPUModel::createDevice(const OptionFlags&, bool, unsigned deviceManagerId) const {
  const ipu_model::Chip& chip = ipu_model::chipNamed(IPUVersion);
  if (numWorkerContexts != chip.workers || tileClockFrequency != chip.clock_hz ||
      exchangeBytesPerCycle != chip.exchange_bytes_per_cycle || memcpyBytesPerCycle != chip.copy_bytes_per_cycle) {
    throw poplar_error("IPUModel: `numWorkerContexts`, clock and rates must be those of " + IPUVersion +
                       ", got others. Costs come from the chip's table: choose another IPUVersion.");
  }
  Target target(chip, TargetType::IPU_MODEL, numIPUs, tilesPerIPU);
  target.setBytesPerTile(memoryBytesPerTile);
  return {deviceManagerId, std::move(target)};
}

}  // namespace poplar
