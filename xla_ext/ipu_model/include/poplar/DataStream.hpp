// Streams between the host and the tensors of a graph.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <poplar/StringRef.hpp>
#include <poplar/Type.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace poplar {

enum class DataStreamType { HostToDeviceFIFO, DeviceToHostFIFO, HostToDeviceBuffer, DeviceToHostBuffer };
enum class ReplicatedStreamMode { REPLICATE, BROADCAST };

class DataStream {
 public:
  DataStream() = default;
  DataStream(unsigned id, std::string handle, DataStreamType type, Type element, std::size_t elements,
             ReplicatedStreamMode mode = ReplicatedStreamMode::REPLICATE)
      : id_(id), handle_(std::move(handle)), type_(type), element_(element), elements_(elements), mode_(mode) {}

  unsigned id() const { return id_; }
  StringRef handle() const { return handle_; }
  DataStreamType type() const { return type_; }
  Type elementType() const { return element_; }
  std::size_t numElements() const { return elements_; }
  // Whether each replica of a graph has its own data, or all get the same.
  ReplicatedStreamMode replicatedMode() const { return mode_; }
  bool valid() const { return !handle_.empty(); }
  friend bool operator==(const DataStream& a, const DataStream& b) { return a.id_ == b.id_ && a.handle_ == b.handle_; }
  friend bool operator!=(const DataStream& a, const DataStream& b) { return !(a == b); }

 private:
  unsigned id_ = 0;
  std::string handle_;
  DataStreamType type_ = DataStreamType::HostToDeviceFIFO;
  Type element_;
  std::size_t elements_ = 0;
  ReplicatedStreamMode mode_ = ReplicatedStreamMode::REPLICATE;
};

// Memory of the host that programs copy rows to and from.
class RemoteBuffer {
 public:
  RemoteBuffer() = default;
  RemoteBuffer(unsigned id, std::string handle, Type element, std::size_t elements, std::size_t repeats)
      : id_(id), handle_(std::move(handle)), element_(element), elements_(elements), repeats_(repeats) {}

  unsigned id() const { return id_; }
  StringRef handle() const { return handle_; }
  Type elementType() const { return element_; }
  std::size_t numElements() const { return elements_; }
  std::size_t getRepeats() const { return repeats_; }

 private:
  unsigned id_ = 0;
  std::string handle_;
  Type element_;
  std::size_t elements_ = 0;
  std::size_t repeats_ = 1;
};

}  // namespace poplar
