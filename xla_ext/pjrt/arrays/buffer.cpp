#include "pjrt/arrays/buffer.hpp"

#include <utility>

#include "pjrt/interface/table.hpp"

namespace snnjax::pjrt {

executor::Array& Value::get() const {
  ready->wait();
  if (const auto& failure = ready->failure()) throw *failure;
  return *array;
}

Buffer::Buffer(Device* owner, const executor::ArrayType& array_type, std::shared_ptr<Value> array)
    : device(owner),
      type(array_type),
      dims(array_type.shape.begin(), array_type.shape.end()),
      value_(std::move(array)) {
  ++device->num_buffers;
}

Buffer::~Buffer() { --device->num_buffers; }

std::shared_ptr<Value> Buffer::value() const {
  const std::lock_guard lock(mutex_);
  if (value_ == nullptr) {
    refuse("ipu", "buffer", "still be there", "one that was deleted or donated", "Use what the program returned");
  }
  return value_;
}

std::shared_ptr<Value> Buffer::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(value_, nullptr);
}

bool Buffer::isDeleted() const {
  const std::lock_guard lock(mutex_);
  return value_ == nullptr;
}

void pushCopy(const Buffer& from, Copy copy, std::shared_ptr<Completion> done) {
  Queue& queue = from.device->client->queue;
  const std::shared_ptr<Value> value = from.value();
  const bool is_ready = value->ready->isReady(), goes_ahead = is_ready && !queue.isIdle();
  const auto task = [value, copy = std::move(copy), done = std::move(done), goes_ahead] {
    try {
      executor::Array& array = value->get();
      copy(array.type(), goes_ahead ? array.saved() : array.bytes());
      done->finish();
    } catch (const std::exception& exception) {
      done->finish(errorOf(exception));
    }
  };
  queue.push(task, is_ready ? Queue::Kind::kNext : Queue::Kind::kRun);
  if (!goes_ahead || value->ready->failure()) return;
  queue.push([value] { value->array->request(); }, Queue::Kind::kRun);
}

namespace {

// A copy goes through the host's memory, and costs nothing on the modelled links: only programs are accounted for.
Buffer* copyTo(Device& device, const Buffer& source) {
  Queue::refuseInside("device_put");
  auto to = std::make_shared<Value>(nullptr, std::make_shared<Completion>());
  const auto copy = [to, system = device.client->system](const auto& type, const auto& bytes) {
    to->array = std::make_shared<executor::Array>(system, type, bytes);
  };
  pushCopy(source, copy, to->ready);
  return new Buffer(&device, source.type, std::move(to));
}

// jaxlib assumes that every buffer has an event: that of a deleted one has failed.
std::shared_ptr<Completion> readyOf(const Buffer& buffer) {
  try {
    return buffer.value()->ready;
  } catch (const Failure& failure) {
    auto failed = std::make_shared<Completion>();
    failed->finish(failure);
    return failed;
  }
}

void addShapeFunctions(Table& table) {
  table.add("Buffer_ElementType",
            [](BufferElementTypeArgs& args) { args.type = static_cast<int>(args.buffer->type.dtype); });
  table.add("Buffer_Dimensions", [](BufferDimensionsArgs& args) {
    args.dims = args.buffer->dims.data();
    args.num_dims = args.buffer->dims.size();
  });
  table.add("Buffer_UnpaddedDimensions", [](BufferUnpaddedDimensionsArgs& args) {
    args.unpadded_dims = args.buffer->dims.data();
    args.num_dims = args.buffer->dims.size();
  });
  table.add("Buffer_DynamicDimensionIndices", [](BufferDynamicDimensionIndicesArgs& args) {
    args.dynamic_dim_indices = nullptr;
    args.num_dynamic_dims = 0;
  });
  table.add("Buffer_OnDeviceSizeInBytes",
            [](BufferOnDeviceSizeInBytesArgs& args) { args.on_device_size_in_bytes = args.buffer->type.numBytes(); });
}

}  // namespace

void addBufferFunctions(Table& table) {
  addShapeFunctions(table);
  table.add("Buffer_Destroy", [](BufferDestroyArgs& args) { delete args.buffer; });
  table.add("Buffer_Device", [](BufferDeviceArgs& args) { args.device = args.buffer->device; });
  table.add("Buffer_Memory", [](BufferMemoryArgs& args) { args.memory = &args.buffer->device->memory; });
  table.add("Buffer_Delete", [](BufferDeleteArgs& args) { args.buffer->take(); });
  table.add("Buffer_IsDeleted", [](BufferIsDeletedArgs& args) { args.is_deleted = args.buffer->isDeleted(); });
  // Tiles have no common addresses: this one tells whether two buffers share an array, and nothing may be read there.
  table.add("Buffer_UnsafePointer", [](BufferUnsafePointerArgs& args) {
    args.buffer_pointer = reinterpret_cast<std::uintptr_t>(args.buffer->value().get());
  });
  table.add("Buffer_IsOnCpu", [](BufferIsOnCpuArgs& args) { args.is_on_cpu = false; });
  table.add("Buffer_ReadyEvent", [](BufferReadyEventArgs& args) { args.event = new Event{readyOf(*args.buffer)}; });
  table.add("Buffer_CopyToDevice",
            [](BufferCopyToDeviceArgs& args) { args.dst_buffer = copyTo(*args.dst_device, *args.buffer); });
  table.add("Buffer_CopyToMemory",
            [](BufferCopyToMemoryArgs& args) { args.dst_buffer = copyTo(*args.dst_memory->device, *args.buffer); });
}

}  // namespace snnjax::pjrt
