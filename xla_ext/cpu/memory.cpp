#include "memory.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <ctime>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

namespace snnjax {
namespace {

constexpr std::size_t kMostKept = std::size_t{256} << 20;  // bytes in all
constexpr std::size_t kSmallest = std::size_t{4} << 10;
// The compilation of a training step takes longer, and leaves 40 to 70 MB in the heap that large blocks cannot use.
constexpr std::clock_t kElsewhere = CLOCKS_PER_SEC;  // of the process, all threads

// Block sizes are eighths of powers of two, so that a block fits the next call of similar size, and one of up to twice
// the size serves as well: the layers of a network share their largest. The most recently used blocks are kept; those
// of a network no longer in use make room. The lists of them lie in the blocks themselves: a block is given back by a
// destructor, which must not fail for want of memory. Those of one size have a list of their own: a deep network keeps
// hundreds, and the beginning of each is far from any cache.
class Spares {
 public:
  // A block of this size, or of up to twice the size; {nullptr, 0} if there is none.
  std::pair<void*, std::size_t> take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const std::size_t first = classOf(bytes);
    for (std::size_t i = first; i <= std::min(first + kClasses, newest_of_.size() - 1); ++i) {
      Spare* const spare = newest_of_[i];
      if (spare == nullptr) continue;
      remove(spare);
      return {spare, spare->bytes};
    }
    return {};
  }

  // Whether the process has computed something else since the last call, long enough to have compiled a program. While
  // it only waits, the heap stays as it is.
  bool comesFromElsewhere() {
    const std::clock_t now = std::clock();
    const std::lock_guard lock(mutex_);
    return now - std::exchange(last_call_, now) > kElsewhere;
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
  static constexpr std::size_t kClasses = 4;  // of sizes, from one power of two to the next

  // The first bytes of a block that is kept.
  struct Spare {
    std::size_t bytes;
    Spare *older, *newer;                  // of all
    Spare *older_of_size, *newer_of_size;  // of those of its size
  };
  static_assert(sizeof(Spare) <= kSmallest);

  // Sizes are quarters of the power of two below them.
  static std::size_t classOf(std::size_t bytes) {
    const auto power = static_cast<std::size_t>(std::bit_width(bytes) - 1);
    return kClasses * power + (bytes >> (power - 2)) % kClasses;
  }
  Spare*& newestOf(std::size_t bytes) { return newest_of_[classOf(bytes)]; }

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
  std::array<Spare*, kClasses * std::numeric_limits<std::size_t>::digits> newest_of_{};
  std::size_t kept_ = 0;
  std::clock_t last_call_ = 0;  // the process's time then
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
  if (is_huge && spares().comesFromElsewhere()) trimHeap();
  if (!kExactBlocks) {
    if (const auto [spare, spare_size] = spares().take(size); spare != nullptr) return Block(spare, {spare_size});
  }
  void* const data = allocateAligned(is_huge ? kHugePage : kCacheLine, size);
  if (is_huge) wishHugePages(data, size);
  return Block(data, {size});
}

}  // namespace snnjax
