// The boundary to XLA: arrays of operands and results, checked before anything reads them.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "error.hpp"
#include "export.hpp"
#include "kernels.hpp"
#include "memory.hpp"
#include "numbers.hpp"
#include "parallel.hpp"
#include "xla/ffi/api/ffi.h"

namespace snnjax {

namespace ffi = xla::ffi;

// An operand, result or attribute that does not fit the target.
inline Error misfit(const std::string& op, const std::string& name, const std::string& expected,
                    const std::string& actual) {
  return {ErrorCode::kInvalidArgument,
          op + ": `" + name + "` must " + expected + ", got " + actual +
              ". Call it through snnjax, with kernels of its version (`make kernels` builds them)."};
}

// One operand, which is read-only, or one result. All have a leading groups axis, of length 1 where the groups share
// it.
template <typename Void>
class Array {
 public:
  template <typename T>
  using Pointer = std::conditional_t<std::is_const_v<Void>, const T*, T*>;

  Array() = default;
  explicit Array(const ffi::AnyBuffer& buffer)
      : data_(static_cast<Pointer<char>>(buffer.untyped_data())),
        type_(buffer.element_type()),
        dims_(buffer.dimensions()) {
    groups_ = dims_.size() > 0 ? dims_[0] : 0;
    group_bytes_ = groups_ > 0 ? static_cast<Index>(buffer.size_bytes()) / groups_ : 0;
  }

  // Whether it is there, with elements or without.
  explicit operator bool() const { return type_ != ffi::DataType::INVALID; }
  ffi::DataType type() const { return type_; }
  ffi::AnyBuffer::Dimensions dimensions() const { return dims_; }
  // The length of an axis behind that of the groups; -1 where it has none.
  Index length(std::size_t axis) const { return dims_.size() < axis + 2 ? -1 : Index{dims_[axis + 1]}; }
  Index groupBytes() const { return group_bytes_; }
  Void* at(Index group) const { return data_ == nullptr ? nullptr : data_ + (groups_ > 1 ? group * group_bytes_ : 0); }
  template <typename T>
  Pointer<T> at(Index group) const {
    return static_cast<Pointer<T>>(at(group));
  }
  BasicNumbers<Void> numbers(Index group) const { return {at(group), type_ == ffi::BF16}; }

 private:
  Pointer<char> data_ = nullptr;
  ffi::DataType type_ = ffi::DataType::INVALID;
  ffi::AnyBuffer::Dimensions dims_;
  Index groups_ = 1, group_bytes_ = 0;
};
using Operand = Array<const void>;
using Result = Array<void>;

// Those that an array may have; nothing is allocated, since each call of a small network checks dozens of arrays.
class Types {
 public:
  constexpr Types(std::initializer_list<ffi::DataType> types) : size_(std::ssize(types)) {
    std::copy(types.begin(), types.end(), all_.begin());
  }
  constexpr bool contain(ffi::DataType type) const {
    return std::find(all_.begin(), all_.begin() + size_, type) != all_.begin() + size_;
  }

 private:
  std::array<ffi::DataType, 4> all_{};
  std::ptrdiff_t size_;
};

inline std::string text(std::span<const Index> shape) {
  std::string out = "[groups";
  for (const Index length : shape) out += ", " + (length < 0 ? std::string("any") : std::to_string(length));
  return out + "]";
}

inline std::string text(ffi::AnyBuffer::Dimensions dims) {
  std::string out = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) out += (i > 0 ? ", " : "") + std::to_string(dims[i]);
  return out + "]";
}

// Operands or results in the order in which they travel.
template <typename Item>
class Arrays {
 public:
  Arrays(std::string op, ffi::RemainingArgs operands)
    requires std::is_same_v<Item, Operand>
      : op_(std::move(op)) {
    for (std::size_t i = 0; i < operands.size(); ++i) all_.emplace_back(operands.get<ffi::AnyBuffer>(i).value());
    countGroups();
  }
  Arrays(std::string op, ffi::RemainingRets results)
    requires std::is_same_v<Item, Result>
      : op_(std::move(op)) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      const ffi::AnyBuffer buffer = *results.get<ffi::AnyBuffer>(i).value();
      all_.emplace_back(buffer);
      wishHugePagesForResult(buffer.untyped_data(), buffer.size_bytes());
    }
    countGroups();
  }

  const std::string& op() const { return op_; }
  Index groups() const { return groups_; }

  const std::vector<Item>& all() const { return all_; }

  // Throws unless an array has a shape (behind the groups axis) and one of some types. Groups may share an operand, but
  // no result: each writes its own.
  void need(std::string_view name, const Item& item, std::span<const Index> shape, const Types& types) const {
    const auto dims = item.dimensions();
    const bool may_share = std::is_same_v<Item, Operand>;
    const bool fits = dims.size() == shape.size() + 1 && (dims[0] == groups_ || (dims[0] == 1 && may_share)) &&
                      std::equal(shape.begin(), shape.end(), dims.begin() + 1);
    if (!fits) throw misfit(op_, std::string(name), "have the shape " + text(shape), text(dims));
    if (!types.contain(item.type())) {
      throw misfit(op_, std::string(name), "have a dtype of the target",
                   "type " + std::to_string(static_cast<int>(item.type())));
    }
  }

 private:
  void countGroups() {
    for (const Item& item : all_) {
      if (item.dimensions().size() > 0) groups_ = std::max(groups_, Index{item.dimensions()[0]});
    }
  }

  std::string op_;
  std::vector<Item> all_;
  Index groups_ = 1;
};
using Operands = Arrays<Operand>;
using Results = Arrays<Result>;

// Throws unless operands have one group, or as many as the results.
inline void needSameGroups(const Operands& operands, const Results& results) {
  if (operands.groups() == 1 || operands.groups() == results.groups()) return;
  throw misfit(results.op(), "groups", "be those of the operands, " + std::to_string(operands.groups()),
               std::to_string(results.groups()));
}

inline constexpr Types kFloating{ffi::F32, ffi::BF16};
// Membranes and the constants of neurons, whatever the weights are.
inline constexpr Types kWide{ffi::F32};

// uint16 where the id of an unused slot, `neurons`, fits into it: as in snnjax/_sparse_spikes.py.
inline ffi::DataType idType(Index neurons) { return neurons <= kMaxShortNeurons ? ffi::U16 : ffi::S32; }

// A surrogate as static values have it: a reach of 0 is unlimited.
inline SurrogateForm surrogateOf(Surrogate kind, float slope, float reach) {
  return {kind, slope, reach > 0.0F ? reach : std::numeric_limits<float>::infinity()};
}

// The caller and XLA's own pool. Tasks beside the caller's are few: at most one per thread.
inline Threads threadsOf(ffi::ThreadPool pool) {
  const Index count = pool.num_threads();
  return {[pool](Threads::Task task) mutable { pool.Schedule(std::move(task)); }, count};
}

// The exception at work as an error of XLA.
inline ffi::Error currentError(const char* op) {
  try {
    throw;
  } catch (const Error& error) {
    return ffi::Error(static_cast<ffi::ErrorCode>(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return ffi::Error(ffi::ErrorCode::kResourceExhausted, std::string(op) + ": out of memory. Use a smaller batch.");
  } catch (const std::exception& error) {
    return ffi::Error::Internal(std::string(op) + ": " + error.what());
  }
}

// The body of a handler: exceptions become XLA errors. None may leave it, also if there is no memory for a message.
template <typename Body>
ffi::Error guarded(const char* op, Body body) {
  try {
    body();
    return ffi::Error::Success();
  } catch (...) {
    try {
      return currentError(op);
    } catch (...) {
      return ffi::Error(ffi::ErrorCode::kResourceExhausted, "out of memory");  // short enough to need none
    }
  }
}

}  // namespace snnjax
