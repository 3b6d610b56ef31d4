// The border to XLA: arrays of operands and results, checked before anything reads them.
#pragma once

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels.hpp"
#include "memory.hpp"
#include "numbers.hpp"
#include "parallel.hpp"
#include "xla/ffi/api/ffi.h"

namespace snnjax {

namespace ffi = xla::ffi;

// An operand or a result that does not fit; the message follows the error template of DESIGN.
class Misfit : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One operand or result. All have a leading groups axis, of length 1 where the groups share it.
class Array {
 public:
  Array() = default;
  Array(void* data, ffi::DataType type, Index groups, Index group_bytes)
      : data_(static_cast<char*>(data)), type_(type), groups_(groups), group_bytes_(group_bytes) {}

  explicit operator bool() const { return data_ != nullptr; }
  ffi::DataType type() const { return type_; }
  Index groups() const { return groups_; }
  void* at(Index group) const { return data_ == nullptr ? nullptr : data_ + (groups_ > 1 ? group * group_bytes_ : 0); }
  template <typename T>
  T* at(Index group) const {
    return static_cast<T*>(at(group));
  }
  Numbers numbers(Index group) const { return {at(group), type_ == ffi::BF16}; }

 private:
  char* data_ = nullptr;
  ffi::DataType type_ = ffi::DataType::INVALID;
  Index groups_ = 1, group_bytes_ = 0;
};

// Operands or results, taken one after the other in the order of the Python side.
class Arrays {
 public:
  using Shape = std::vector<Index>;
  using Types = std::vector<ffi::DataType>;

  Arrays(std::string op, ffi::RemainingArgs operands) : op_(std::move(op)) {
    for (std::size_t i = 0; i < operands.size(); ++i) buffers_.push_back(operands.get<ffi::AnyBuffer>(i).value());
    countGroups();
  }
  Arrays(std::string op, ffi::RemainingRets results) : op_(std::move(op)), are_results_(true) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      buffers_.push_back(*results.get<ffi::AnyBuffer>(i).value());
      wishHugePages(buffers_.back().untyped_data(), buffers_.back().size_bytes());
    }
    countGroups();
  }

  Index groups() const { return groups_; }
  bool isEnd() const { return next_ == buffers_.size(); }

  // The next array, of a shape (behind the groups axis) and of one of some types. Groups may share an operand, but no
  // result: each writes its own.
  Array take(const char* name, const Shape& shape, const Types& types) {
    if (isEnd()) throw Misfit(op_ + ": `" + name + "` must be given, got nothing. Call it through snnjax.");
    const ffi::AnyBuffer& buffer = buffers_[next_++];
    const auto dims = buffer.dimensions();
    const bool fits = dims.size() == shape.size() + 1 && (dims[0] == groups_ || (dims[0] == 1 && !are_results_)) &&
                      std::equal(shape.begin(), shape.end(), dims.begin() + 1);
    if (!fits) throw Misfit(message(name, "have the shape " + text(shape), textOf(dims)));
    if (std::find(types.begin(), types.end(), buffer.element_type()) == types.end()) {
      throw Misfit(
          message(name, "have another dtype", "type " + std::to_string(static_cast<int>(buffer.element_type()))));
    }
    const auto bytes = static_cast<Index>(buffer.size_bytes());
    return {buffer.untyped_data(), buffer.element_type(), dims[0], dims[0] > 0 ? bytes / dims[0] : 0};
  }

  // Once everything is taken: nothing may be left, and operands have one group or as many as the results.
  static void finish(const Arrays& operands, const Arrays& results) {
    for (const Arrays* arrays : {&operands, &results}) {
      if (arrays->isEnd()) continue;
      throw Misfit(arrays->op_ + ": `arrays` must be " + std::to_string(arrays->next_) + ", got " +
                   std::to_string(arrays->buffers_.size()) + ". Call it through snnjax.");
    }
    if (operands.groups_ == 1 || operands.groups_ == results.groups_) return;
    throw Misfit(results.op_ + ": `groups` must be those of the operands, " + std::to_string(operands.groups_) +
                 ", got " + std::to_string(results.groups_) + ". Call it through snnjax.");
  }

  // The length of an axis (behind the groups axis) of the array that `take` yields next.
  Index nextLength(std::size_t axis) const {
    if (isEnd() || buffers_[next_].dimensions().size() < axis + 2) return -1;
    return buffers_[next_].dimensions()[axis + 1];
  }

 private:
  void countGroups() {
    for (const ffi::AnyBuffer& buffer : buffers_) {
      if (buffer.dimensions().size() > 0) groups_ = std::max(groups_, Index{buffer.dimensions()[0]});
    }
  }

  std::string message(const std::string& name, const std::string& expected, const std::string& actual) const {
    return op_ + ": `" + name + "` must " + expected + ", got " + actual + ". Call it through snnjax.";
  }

  static std::string text(const Shape& shape) {
    std::string out = "[groups";
    for (const Index length : shape) out += ", " + (length < 0 ? std::string("any") : std::to_string(length));
    return out + "]";
  }

  static std::string textOf(ffi::AnyBuffer::Dimensions dims) {
    std::string out = "[";
    for (std::size_t i = 0; i < dims.size(); ++i) out += (i > 0 ? ", " : "") + std::to_string(dims[i]);
    return out + "]";
  }

  std::string op_;
  bool are_results_ = false;
  std::vector<ffi::AnyBuffer> buffers_;
  std::size_t next_ = 0;
  Index groups_ = 1;
};

inline const Arrays::Types kFloating{ffi::F32, ffi::BF16};
// Membranes and the constants of neurons, whatever the weights are.
inline const Arrays::Types kWide{ffi::F32};

// The caller and XLA's own pool. Tasks behind the caller's are few: at most one a thread.
inline Threads threadsOf(ffi::ThreadPool pool) {
  const Index count = pool.num_threads();
  return {[pool](Threads::Task task) mutable { pool.Schedule(std::move(task)); }, count};
}

// The body of a handler: what it throws becomes XLA's error.
template <typename Body>
ffi::Error guarded(const char* op, Body body) {
  try {
    body();
    return ffi::Error::Success();
  } catch (const Misfit& misfit) {
    return ffi::Error::InvalidArgument(misfit.what());
  } catch (const std::bad_alloc&) {
    return ffi::Error(ffi::ErrorCode::kResourceExhausted, std::string(op) + ": out of memory. Use a smaller batch.");
  } catch (const std::exception& error) {
    return ffi::Error::Internal(std::string(op) + ": " + error.what());
  }
}

}  // namespace snnjax
