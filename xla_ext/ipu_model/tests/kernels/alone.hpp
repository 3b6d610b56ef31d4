// One vertex of poplar_kernels alone: its fields in buffers of exactly their size between guards, its workers one after
// the other.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "check.hpp"
#include "codelets/codelet_library.hpp"
#include "error.hpp"

namespace kernels {

// Bytes between two runs of guard bytes, aligned as fields of vertices are.
class Guarded {
 public:
  explicit Guarded(std::span<const std::byte> bytes) : size_(bytes.size()), memory_(words()) {
    std::memset(memory_.data(), kGuard, memory_.size() * sizeof(std::uint64_t));
    std::copy(bytes.begin(), bytes.end(), data());
  }

  std::byte* data() { return reinterpret_cast<std::byte*>(memory_.data() + kGuardWords); }
  std::size_t size() const { return size_; }

  bool guardsHold() {
    const std::byte* const first = reinterpret_cast<std::byte*>(memory_.data());
    const std::byte* const last = first + memory_.size() * sizeof(std::uint64_t);
    const auto is_guard = [](std::byte b) { return b == std::byte{kGuard}; };
    return std::all_of(first, static_cast<const std::byte*>(data()), is_guard) &&
           std::all_of(static_cast<const std::byte*>(data()) + size_, last, is_guard);
  }

 private:
  // As float a small number, as an id one that no matrix of these tests has: reading it shows.
  static constexpr int kGuard = 0xA5;
  static constexpr std::size_t kGuardWords = 16;

  std::size_t words() const { return 2 * kGuardWords + (size_ + 7) / 8; }

  std::size_t size_;
  std::vector<std::uint64_t> memory_;
};

// A test that asks for what the codelets do not have.
inline snnjax::Error misuse(const std::string& message) { return {snnjax::ErrorCode::kInvalidArgument, message}; }

class Alone {
 public:
  Alone(const ipu_model::CodeletLibrary& library, const std::string& name) : name_(name), type_(library.find(name)) {
    if (type_ == nullptr) throw misuse("no vertex " + name);
    memory_ = std::make_unique<std::byte[]>(type_->size + type_->alignment);
    void* start = memory_.get();
    std::size_t space = type_->size + type_->alignment;
    place_ = std::align(type_->alignment, type_->size, start, space);
    type_->construct(place_);
  }
  ~Alone() {
    if (place_ != nullptr) type_->destroy(place_);
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

  // Sets an edge (a vector, or a vector of one element for a scalar).
  template <typename T>
  Alone& edge(const std::string& field, const std::vector<T>& values) {
    const ipu_model::FieldType& type = fieldOf(field, sizeof(T));
    Guarded& buffer = buffers_.insert_or_assign(field, Guarded(std::as_bytes(std::span(values)))).first->second;
    const ipu_model::EdgeData row{buffer.data(), values.size()};
    type.connect(place_, row);
    return *this;
  }
  // Sets the rows of a Vector of Vectors; row i is got as "field[i]".
  template <typename T>
  Alone& rows(const std::string& field, const std::vector<std::vector<T>>& all) {
    const ipu_model::FieldType& type = fieldOf(field, sizeof(T));
    std::vector<ipu_model::EdgeData> data;
    for (std::size_t i = 0; i < all.size(); ++i) {
      Guarded row(std::as_bytes(std::span(all[i])));
      const std::string name = i == 0 ? field : field + "[" + std::to_string(i) + "]";
      data.push_back({buffers_.insert_or_assign(name, std::move(row)).first->second.data(), all[i].size()});
    }
    if (all.empty()) zeros(field, 0);
    if (!all.empty()) type.connect(place_, data);
    return *this;
  }
  // Sets an edge of any type to `elements` zeros, and a state to 0.
  Alone& zeros(const std::string& field, std::size_t elements) {
    const ipu_model::FieldType* const type = type_->field(field);
    const std::vector<std::byte> values(elements * type->size);
    Guarded& buffer = buffers_.insert_or_assign(field, Guarded(values)).first->second;
    const ipu_model::EdgeData row{buffer.data(), elements};
    type->connect(place_, row);
    return *this;
  }
  Alone& zeroState(const std::string& field) {
    constexpr std::uint64_t kZero = 0;
    type_->field(field)->set(place_, &kZero);
    states_.push_back(field);
    return *this;
  }
  template <typename T>
  Alone& state(const std::string& field, T value) {
    fieldOf(field, sizeof(T)).set(place_, &value);
    states_.push_back(field);
    return *this;
  }

  // All workers, the last one first if `backwards`: they must not depend on each other.
  Alone& run(bool backwards = false) {
    for (const ipu_model::FieldType& field : type_->fields) {
      const bool is_state = field.direction == ipu_model::Direction::State;
      const bool is_set = is_state ? std::ranges::count(states_, field.name) > 0 : buffers_.contains(field.name);
      if (!is_set) check::that(false, (name_ + "." + field.name + " is set").c_str(), __FILE__, __LINE__);
    }
    for (unsigned i = 0; i < numWorkers(); ++i) type_->compute(place_, backwards ? numWorkers() - 1 - i : i);
    for (auto& [field, buffer] : buffers_) {
      if (!buffer.guardsHold()) check::that(false, (name_ + "." + field + " is kept to").c_str(), __FILE__, __LINE__);
    }
    for (unsigned i = 0; i < numWorkers(); ++i) {
      if (cycles(i) < 2) check::that(false, (name_ + " costs more than one slot").c_str(), __FILE__, __LINE__);
    }
    return *this;
  }

  template <typename T>
  std::vector<T> get(const std::string& field) {
    Guarded& buffer = buffers_.at(field);
    std::vector<T> values(buffer.size() / sizeof(T));
    std::copy_n(buffer.data(), buffer.size(), reinterpret_cast<std::byte*>(values.data()));
    return values;
  }

  unsigned numWorkers() const { return type_->multi ? 6 : 1; }
  std::uint64_t cycles(unsigned worker) const {
    if (type_->worker_cycles == nullptr) throw misuse("no cost of " + name_);
    return type_->worker_cycles(place_, worker);
  }
  // Of the slowest worker.
  std::uint64_t cycles() const {
    std::uint64_t most = 0;
    for (unsigned worker = 0; worker < numWorkers(); ++worker) most = std::max(most, cycles(worker));
    return most;
  }

 private:
  const ipu_model::FieldType& fieldOf(const std::string& name, std::size_t size) const {
    const ipu_model::FieldType* const field = type_->field(name);
    if (field == nullptr) throw misuse(name_ + " has no field " + name);
    if (field->size != size) throw misuse(name_ + "." + name + " has elements of another size");
    return *field;
  }

  std::string name_;
  const ipu_model::VertexType* type_;
  std::unique_ptr<std::byte[]> memory_;
  void* place_ = nullptr;
  std::map<std::string, Guarded> buffers_;
  std::vector<std::string> states_;
};

// Small numbers that sums of hundreds hold exactly: eighths in [-4, 4), in an order that looks random.
class Draw {
 public:
  explicit Draw(std::uint32_t seed) : state_(seed) {}

  std::uint32_t bits() { return state_ = state_ * 1664525U + 1013904223U; }  // Numerical Recipes' generator
  unsigned below(unsigned limit) { return (bits() >> 8) % limit; }
  float eighths() { return (static_cast<float>(below(64)) - 32.0f) / 8.0f; }

  template <typename T = float>
  std::vector<T> row(std::size_t count) {
    std::vector<T> values(count);
    for (T& value : values) value = drawn<T>();
    return values;
  }

 private:
  // A negative float has no unsigned value; an int wraps around.
  template <typename T>
  T drawn() {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<int>(eighths()));
    return static_cast<T>(eighths());
  }

  std::uint32_t state_;
};

// `test(library)` with the codelets of the file named on the command line.
template <typename Test>
int runTest(int argc, char** argv, Test&& test) {
  if (argc != 2) throw misuse("name the library of codelets to test");
  const std::string error = check::messageOf([&] { test(*ipu_model::CodeletLibrary::load(argv[1])); });
  if (!error.empty()) check::that(false, error.c_str(), argv[1], 0);
  return check::failures;
}

}  // namespace kernels
