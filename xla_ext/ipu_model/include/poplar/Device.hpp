// A modelled IPU, or several; always available, to any number of programs.
#pragma once

#include <map>
#include <poplar/OptionFlags.hpp>
#include <poplar/Target.hpp>
#include <string>
#include <vector>

namespace poplar {

class Device {
 public:
  Device() = default;
  Device(unsigned id, Target target) : id_(id), target_(std::move(target)) {}

  static Device createCPUDevice(unsigned numIPUs = 1);

  unsigned getId() const { return id_; }
  const Target& getTarget() const { return target_; }
  bool attach() const;
  void detach() const;
  bool isAttached() const { return attached_; }
  bool supportsRemoteBuffers() const { return false; }
  bool hasGateway() const { return false; }
  void getDriverVersion(unsigned& major, unsigned& minor, unsigned& point) const { major = minor = point = 0; }
  std::map<std::string, std::string> getAttributes() const;
  std::vector<unsigned> getDriverIDs() const;
  Device createVirtualDevice(unsigned tilesPerIPU) const;
  void reset() const {}

 private:
  unsigned id_ = 0;
  Target target_;
  mutable bool attached_ = false;  // attach() is const in Poplar
};

}  // namespace poplar
