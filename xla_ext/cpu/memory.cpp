#include "memory.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

namespace snnjax {
namespace {

constexpr std::size_t kMostKept = std::size_t{256} << 20;  // bytes in all
constexpr std::size_t kSmallest = std::size_t{4} << 10;

// Block sizes are eighths of powers of two, so that a block fits the next call of similar size. The most recently used
// blocks are kept; those of a network no longer in use make room. The lists of them lie in the blocks themselves: a
// block is given back by a destructor, which must not fail for want of memory. Those of one size have a list of their
// own: a deep network keeps hundreds, and the beginning of each is far from any cache.
class Spares {
 public:
  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    Spare* const spare = newestOf(bytes);
    if (spare != nullptr) remove(spare);
    return spare;
  }

  // Counts a new block; true whenever all that were counted have doubled.
  bool doubleBy(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    counted_ += bytes;
    if (counted_ < 2 * last_) return false;
    last_ = counted_;
    return true;
  }

  void keep(void* data, std::size_t bytes) noexcept {
    if (kExactBlocks || bytes > kMostKept) return freeAligned(data);
    Spare* gone = nullptr;  // freed without the lock
    {
      const std::lock_guard lock(mutex_);
      while (kept_ + bytes > kMostKept) {
        Spare* const oldest = oldest_;
        remove(oldest);
        oldest->older = gone;
        gone = oldest;
      }
      add(new (data) Spare{bytes, newest_, nullptr, nullptr, nullptr});
    }
    while (gone != nullptr) freeAligned(std::exchange(gone, gone->older));
  }

 private:
  // The first bytes of a block that is kept.
  struct Spare {
    std::size_t bytes;
    Spare *older, *newer;                  // of all
    Spare *older_of_size, *newer_of_size;  // of those of its size
  };
  static_assert(sizeof(Spare) <= kSmallest);

  // The one of this size that was used last. A size has its power of two and three more bits.
  Spare*& newestOf(std::size_t bytes) {
    const auto power = static_cast<unsigned>(std::bit_width(bytes) - 1);
    return newest_of_[power][bytes >> (power - 3) & 7];
  }

  void add(Spare* spare) {
    (newest_ == nullptr ? oldest_ : newest_->newer) = spare;
    newest_ = spare;
    Spare*& newest_of = newestOf(spare->bytes);
    if (newest_of != nullptr) newest_of->newer_of_size = spare;
    spare->older_of_size = std::exchange(newest_of, spare);
    kept_ += spare->bytes;
  }

  void remove(Spare* spare) {
    (spare->older == nullptr ? oldest_ : spare->older->newer) = spare->newer;
    (spare->newer == nullptr ? newest_ : spare->newer->older) = spare->older;
    (spare->newer_of_size == nullptr ? newestOf(spare->bytes) : spare->newer_of_size->older_of_size) =
        spare->older_of_size;
    if (spare->older_of_size != nullptr) spare->older_of_size->newer_of_size = spare->newer_of_size;
    kept_ -= spare->bytes;
  }

  std::mutex mutex_;
  Spare* newest_ = nullptr;  // used last
  Spare* oldest_ = nullptr;
  std::array<std::array<Spare*, 8>, std::numeric_limits<std::size_t>::digits> newest_of_{};
  std::size_t kept_ = 0;
  std::size_t counted_ = 0, last_ = 0;
};

Spares& spares() {
  static auto& all = *new Spares;  // never destroyed: the threads of a pool may outlive everything else
  return all;
}

}  // namespace

void SpareMemory::GiveBack::operator()(void* data) const { spares().keep(data, bytes); }

SpareMemory::Block SpareMemory::take(std::size_t bytes) {
  const std::size_t unit = std::bit_ceil(std::max(bytes, kSmallest)) / 8;
  // The scratch of a tile is read row by row in any order: in huge pages it competes for no sets of the second-level
  // cache and takes one entry of the address cache, which makes a training step 4 to 10 % faster.
  const bool is_huge = !kExactBlocks && bytes >= kHugePage / 4;
  const std::size_t grain = is_huge ? std::max(unit, kHugePage) : unit;
  const std::size_t size = kExactBlocks ? bytes : (std::max(bytes, kSmallest) + grain - 1) / grain * grain;
  void* data = kExactBlocks ? nullptr : spares().take(size);
  if (data == nullptr) {
    data = allocateAligned(is_huge ? kHugePage : kCacheLine, size);
    if (is_huge) wishHugePages(data, size);
    // The compilation of a training step leaves 40 MB in the heap, which blocks of megabytes cannot use.
    if (is_huge && spares().doubleBy(size)) trimHeap();
  }
  return Block(data, GiveBack{size});
}

}  // namespace snnjax
