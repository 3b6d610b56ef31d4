#include "memory.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <vector>

namespace snnjax {
namespace {

constexpr std::size_t kMostKept = std::size_t{64} << 20;  // bytes in all
constexpr std::size_t kSmallest = std::size_t{4} << 10;

struct Free {
  void operator()(void* data) const { std::free(data); }
};

// Sizes of blocks are eighths of powers of two, so that one fits the next call of about the same size.
class Spares {
 public:
  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = spares_.find(bytes);
    if (found == spares_.end() || found->second.empty()) return nullptr;
    void* data = found->second.back().release();
    found->second.pop_back();
    kept_ -= bytes;
    return data;
  }

  void keep(void* data, std::size_t bytes) {
    std::unique_ptr<void, Free> owner(data);  // frees what is too much
    const std::lock_guard lock(mutex_);
    if (kExactBlocks || kept_ + bytes > kMostKept) return;
    spares_[bytes].push_back(std::move(owner));
    kept_ += bytes;
  }

 private:
  std::mutex mutex_;
  std::map<std::size_t, std::vector<std::unique_ptr<void, Free>>> spares_;  // by size in bytes
  std::size_t kept_ = 0;
};

Spares& spares() {
  static Spares all;
  return all;
}

}  // namespace

void SpareMemory::GiveBack::operator()(void* data) const { spares().keep(data, bytes); }

SpareMemory::Block SpareMemory::take(std::size_t bytes) {
  if (bytes > SIZE_MAX / 4) throw std::bad_alloc();
  const std::size_t unit = std::bit_ceil(std::max(bytes, kSmallest)) / 8;
  const std::size_t size = kExactBlocks ? bytes : (std::max(bytes, kSmallest) + unit - 1) / unit * unit;
  void* data = spares().take(size);
  if (data == nullptr) {
    data = allocateAligned(!kExactBlocks && size >= kHugePage ? kHugePage : kCacheLine, size);
    wishHugePages(data, size);
  }
  return Block(data, GiveBack{size});
}

}  // namespace snnjax
