#include "spare_memory.hpp"

#include <bit>
#include <mutex>
#include <vector>

#include "memory.hpp"

namespace snnjax {
namespace {

constexpr std::size_t kMostKept = std::size_t{64} << 20;  // bytes in all
constexpr std::size_t kSmallest = std::size_t{4} << 10;

struct Free {
  void operator()(void* data) const { std::free(data); }
};

// Blocks have powers of two for sizes, so that one fits the next call of about the same size.
class Spares {
 public:
  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    for (Spare& spare : spares_) {
      if (spare.bytes != bytes) continue;
      void* data = spare.data.release();
      std::swap(spare, spares_.back());
      spares_.pop_back();
      kept_ -= bytes;
      return data;
    }
    return nullptr;
  }

  void keep(void* data, std::size_t bytes) {
    std::unique_ptr<void, Free> owner(data);  // frees what is too much
    const std::lock_guard lock(mutex_);
    if (kExactBlocks || kept_ + bytes > kMostKept) return;
    spares_.push_back({std::move(owner), bytes});
    kept_ += bytes;
  }

 private:
  struct Spare {
    std::unique_ptr<void, Free> data;
    std::size_t bytes;
  };

  std::mutex mutex_;
  std::vector<Spare> spares_;
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
  const std::size_t size = kExactBlocks ? bytes : std::bit_ceil(std::max(bytes, kSmallest));
  void* data = spares().take(size);
  if (data == nullptr) {
    data = allocateAligned(kExactBlocks ? kCacheLine : std::min(size, kHugePage), size);
    wishHugePages(data, size);
  }
  return Block(data, GiveBack{size});
}

}  // namespace snnjax
