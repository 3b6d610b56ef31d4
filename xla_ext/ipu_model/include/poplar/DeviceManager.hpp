// Finds devices. Here every device is a model, whichever type a program asks for, so that programs written for hardware
// run unchanged: SNNJAX_IPU_VERSION (mk1, mk2, bow, c600) chooses the chip, SNNJAX_IPU_TILES the number of tiles,
// SNNJAX_IPU_DEVICES the number of IPUs (16).
#pragma once

#include <poplar/Device.hpp>
#include <vector>

namespace poplar {

class DeviceManager {
 public:
  static DeviceManager createDeviceManager() { return {}; }

  std::size_t getNumDevices() const;
  std::vector<Device> getDevices(const OptionFlags& opts = {}) const;
  std::vector<Device> getDevices(TargetType type, unsigned requiredNumIPUs, const OptionFlags& opts = {}) const;
  Device getDevice(unsigned deviceManagerId, const OptionFlags& opts = {}) const;
  std::vector<unsigned> getDeviceIds() const;
  Device acquireAvailableDevice(unsigned numIPUs, const OptionFlags& opts = {}) const;
  Device acquireAvailableDevice(TargetType type, unsigned numIPUs, const OptionFlags& opts = {}) const;
  Device acquireDeviceById(unsigned deviceId, const OptionFlags& opts = {}) const;
};

}  // namespace poplar
