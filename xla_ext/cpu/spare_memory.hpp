// Memory for what lives no longer than a call, kept from call to call.
//
// The first touch of a page costs more than most calls take (see memory.hpp), and the system takes back what is freed.
#pragma once

#include <memory>

#include "kernels.hpp"

namespace snnjax {

// Memory of a size in bytes, aligned to cache lines.
class SpareMemory {
 public:
  struct GiveBack {
    std::size_t bytes = 0;
    void operator()(void* data) const;
  };
  using Block = std::unique_ptr<void, GiveBack>;

  static Block take(std::size_t bytes);
};

// Numbers that hold whatever was there before.
template <typename T>
class Borrowed {
 public:
  Borrowed() = default;
  explicit Borrowed(Index count) : block_(SpareMemory::take(static_cast<std::size_t>(count) * sizeof(T))) {}

  T* data() const { return static_cast<T*>(block_.get()); }
  T& operator[](Index index) const { return data()[index]; }
  explicit operator bool() const { return block_ != nullptr; }

 private:
  SpareMemory::Block block_;
};

}  // namespace snnjax
