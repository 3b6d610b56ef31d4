// Arrays between the host's memory and buffers.
#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "pjrt/arrays/buffer.hpp"
#include "pjrt/interface/table.hpp"

namespace snnjax::pjrt {
namespace {

using executor::ArrayType;
using executor::Dtype;

// The user's name for a type that the IPU lacks.
std::string nameOf(int type) {
  switch (type) {
    case 5: return "int64";
    case 9: return "uint64";
    case 12: return "float64";
    case 15: return "complex128";
    default: return "a type of another kind (PJRT_Buffer_Type " + std::to_string(type) + ")";
  }
}

Dtype dtypeOf(int type) {
  switch (static_cast<Dtype>(type)) {
    case Dtype::kBool:
    case Dtype::kInt8:
    case Dtype::kInt16:
    case Dtype::kInt32:
    case Dtype::kUint8:
    case Dtype::kUint16:
    case Dtype::kUint32:
    case Dtype::kFloat16:
    case Dtype::kFloat32:
    case Dtype::kBfloat16:
    case Dtype::kComplex64: return static_cast<Dtype>(type);
    default:
      refuse("device_put", "x", "be bool, an integer or a float of at most 32 bits, bfloat16, or complex64",
             nameOf(type), "Cast it before it goes to the IPU", ErrorCode::kUnimplemented);
  }
}

// The layout that a caller wants in its memory: PJRT_Buffer_MemoryLayout, as far as it is read.
struct MemoryLayout : Arguments {
  struct Tiled : Arguments {
    const std::int64_t* minor_to_major;
    std::size_t minor_to_major_size;
    const std::int64_t* tile_dims;
    const std::size_t* tile_dim_sizes;
    std::size_t num_tiles;
  } tiled;
  int type;
};

void requireRowMajor(const char* op, const void* layout) {
  if (layout == nullptr) return;
  const auto& given = *static_cast<const MemoryLayout*>(layout);
  const std::span order(given.tiled.minor_to_major, given.tiled.minor_to_major_size);
  if (given.type == 0 && given.tiled.num_tiles == 0 && std::ranges::is_sorted(order, std::greater())) return;
  refuse(op, "layout", "be row-major", "another", "Leave it out");
}

// Copies what `shape` and `strides` (bytes) describe to contiguous memory; returns its end.
std::byte* gather(std::byte* to, const std::byte* from, std::span<const std::size_t> shape,
                  std::span<const std::int64_t> strides, std::size_t element) {
  if (shape.empty()) return std::copy_n(from, element, to);
  if (shape.size() == 1 && strides[0] == static_cast<std::int64_t>(element)) {
    return std::copy_n(from, shape[0] * element, to);
  }
  for (std::size_t i = 0; i < shape[0]; ++i) {
    to = gather(to, from + static_cast<std::int64_t>(i) * strides[0], shape.subspan(1), strides.subspan(1), element);
  }
  return to;
}

// The caller may reuse its memory when this returns, whatever semantics it asked for.
void fromHost(ClientBufferFromHostBufferArgs& args) {
  requireRowMajor("device_put", args.device_layout);
  Device* device = args.memory != nullptr ? args.memory->device : args.device;
  if (device == nullptr) device = args.client->devices.front();
  const ArrayType type{dtypeOf(args.type), {args.dims, args.dims + args.num_dims}};
  std::vector<std::byte> bytes(type.numBytes());
  const auto* data = static_cast<const std::byte*>(args.data);
  if (args.num_byte_strides == 0) {
    std::copy_n(data, bytes.size(), bytes.data());
  } else if (!bytes.empty()) {
    const std::span strides(args.byte_strides, args.num_byte_strides);
    gather(bytes.data(), data, type.shape, strides, bytes.size() / type.numElements());
  }
  auto array = std::make_shared<executor::Array>(device->client->system, storedAs(type), std::move(bytes));
  auto value = std::make_shared<Value>(std::move(array), Completion::done());
  args.buffer = new Buffer(device, type, std::move(value));
  args.done_with_host_buffer = new Event{Completion::done()};
}

void toHost(BufferToHostBufferArgs& args) {
  requireRowMajor("device_get", args.host_layout);
  const std::size_t size = args.src->type.numBytes();
  if (args.dst == nullptr) {
    args.dst_size = size;
    return;
  }
  if (args.dst_size < size) {
    refuse("device_get", "dst_size", "be at least " + std::to_string(size), std::to_string(args.dst_size),
           "Ask for the size first");
  }
  Queue::refuseInside("device_get");
  auto done = std::make_shared<Completion>();
  const auto copy = [to = static_cast<std::byte*>(args.dst)](const auto&, const auto& bytes) {
    std::ranges::copy(bytes, to);
  };
  pushCopy(*args.src, copy, done);
  args.event = new Event{std::move(done)};
}

}  // namespace

void addHostCopyFunctions(Table& table) {
  table.add("Client_BufferFromHostBuffer", [](ClientBufferFromHostBufferArgs& args) { fromHost(args); });
  table.add("Buffer_ToHostBuffer", [](BufferToHostBufferArgs& args) { toHost(args); });
}

}  // namespace snnjax::pjrt
