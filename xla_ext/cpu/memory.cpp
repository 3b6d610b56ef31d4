#include "memory.hpp"

#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

#include <algorithm>
#include <bit>
#include <iterator>
#include <mutex>
#include <vector>

namespace snnjax {
namespace {

constexpr std::size_t kMostKept = std::size_t{256} << 20;  // bytes in all
constexpr std::size_t kSmallest = std::size_t{4} << 10;

struct Free {
  void operator()(void* data) const { std::free(data); }
};

// Block sizes are eighths of powers of two, so that a block fits the next call of similar size. The most recently used
// blocks are kept; those of a network no longer in use make room.
class Spares {
 public:
  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(spares_.rbegin(), spares_.rend(), [&](const Spare& it) { return it.bytes == bytes; });
    if (found == spares_.rend()) return nullptr;
    void* data = found->data.release();
    kept_ -= bytes;
    spares_.erase(std::next(found).base());
    return data;
  }

  // Counts a new block; true whenever all that were counted have doubled.
  bool doubleBy(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    counted_ += bytes;
    if (counted_ < 2 * last_) return false;
    last_ = counted_;
    return true;
  }

  void keep(void* data, std::size_t bytes) {
    Spare spare{bytes, std::unique_ptr<void, Free>(data)};
    std::vector<Spare> gone;  // freed without the lock
    const std::lock_guard lock(mutex_);
    if (kExactBlocks || bytes > kMostKept) return;
    std::size_t number = 0;
    for (; kept_ + bytes > kMostKept; ++number) kept_ -= spares_[number].bytes;
    const auto end = spares_.begin() + static_cast<std::ptrdiff_t>(number);
    gone.assign(std::make_move_iterator(spares_.begin()), std::make_move_iterator(end));
    spares_.erase(spares_.begin(), end);
    spares_.push_back(std::move(spare));
    kept_ += bytes;
  }

 private:
  struct Spare {
    std::size_t bytes;
    std::unique_ptr<void, Free> data;
  };

  std::mutex mutex_;
  std::vector<Spare> spares_;  // most recently used last
  std::size_t kept_ = 0;
  std::size_t counted_ = 0, last_ = 0;
};

Spares& spares() {
  static Spares all;
  return all;
}

// Gives the free pages of the heap back to the system. The compilation of a training step leaves 40 MB of them, which
// blocks of megabytes cannot use.
void trimHeap() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace

void SpareMemory::GiveBack::operator()(void* data) const { spares().keep(data, bytes); }

SpareMemory::Block SpareMemory::take(std::size_t bytes) {
  if (bytes > SIZE_MAX / 4) throw std::bad_alloc();
  const std::size_t unit = std::bit_ceil(std::max(bytes, kSmallest)) / 8;
  // The scratch of a tile is read row by row in any order: in huge pages it competes for no sets of the second-level
  // cache and takes one entry of the address cache, which makes a training step 4 to 10 % faster.
  const bool is_huge = !kExactBlocks && bytes >= kHugePage / 4;
  const std::size_t grain = is_huge ? std::max(unit, kHugePage) : unit;
  const std::size_t size = kExactBlocks ? bytes : (std::max(bytes, kSmallest) + grain - 1) / grain * grain;
  void* data = spares().take(size);
  if (data == nullptr) {
    data = allocateAligned(is_huge ? kHugePage : kCacheLine, size);
    if (is_huge) wishHugePages(data, size);
    if (is_huge && spares().doubleBy(size)) trimHeap();
  }
  return Block(data, GiveBack{size});
}

}  // namespace snnjax
