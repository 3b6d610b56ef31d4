// An array on one IPU, as JAX holds it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "executor/executable.hpp"
#include "pjrt/devices/client.hpp"
#include "pjrt/interface/event.hpp"

namespace snnjax::pjrt {

// An array that exists, or will when a run ends: it is set before `ready`, and stays empty if the run fails.
struct Value {
  std::shared_ptr<executor::Array> array;
  std::shared_ptr<Completion> ready;

  // The array, when it is ready; throws the run's failure.
  executor::Array& get() const;
};

// Deleted, by JAX or by donation, it keeps its type and has no value.
struct Buffer {
  Buffer(Device* owner, const executor::ArrayType& array_type, std::shared_ptr<Value> array);
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  // Throws where it was deleted.
  std::shared_ptr<Value> value() const;
  std::shared_ptr<Value> take();  // nothing where it was deleted
  bool isDeleted() const;

  Device* const device;
  const executor::ArrayType type;
  const std::vector<std::int64_t> dims;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Value> value_;
};

// Gives the elements to `copy` in a task of the queue, and then `done`. If they are ready, they go ahead of runs that
// have not begun, but are counted in the order of the program, so that a profile does not depend on how fast runs are.
using Copy = std::function<void(const executor::ArrayType&, const std::vector<std::byte>&)>;
void pushCopy(const Buffer& from, Copy copy, std::shared_ptr<Completion> done);

class Table;
void addBufferFunctions(Table& table);
void addHostCopyFunctions(Table& table);

}  // namespace snnjax::pjrt
