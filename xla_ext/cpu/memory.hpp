// Memory for whole arrays, in huge pages if large, and memory that is kept from call to call.
//
// The first touch of a page costs far more than writing it again: on a virtual machine with two cores of a Zen 5,
// 0.57 ms a MiB in pages of 4 KiB and 0.05 ms a MiB in pages of 2 MiB (34 MiB, memset, measured 2026).
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "kernels.hpp"
#include "system.hpp"

namespace snnjax {

inline constexpr std::size_t kCacheLine = 64;

// Under the address sanitizer blocks end where their contents end, and none is used twice.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kExactBlocks = true;
#else
inline constexpr bool kExactBlocks = false;
#endif

// Fetches a cache line ahead of its use. The empty instruction counts as an effect: GCC 12 takes functions that only
// prefetch for ones without any, and drops the calls of them that it does not inline.
inline void prefetch(const void* address) {
  __builtin_prefetch(address);
  asm volatile("");
}

// Asks for huge pages in memory of another owner, XLA's results, if large. In the heap the wish outlives the memory and
// holds for whatever comes to lie there, so what is small makes none. XLA packs its arrays into blocks, of which glibc
// maps those of 32 MiB anew in each call. Training steps with results of 8 to 50 MiB took 11 to 19 % less core time by
// it together with leaving out results that nobody reads (busy machine), and their processes no more memory.
// At both ends the wish holds for whole huge pages, which a result shares with its neighbours: mapped blocks begin at
// small pages, and XLA packs its arrays side by side. By this and by wishes from 1 MiB on in place of 4, the least of
// 20 training steps of a VGG with lists had 1,606 in place of 5,183 page faults and took 3 % less core time; the
// medians of page faults are alike (Zen 4, busy machine).
inline constexpr std::size_t kLargeResult = std::size_t{1} << 20;
inline void wishHugePagesForResult(void* data, std::size_t bytes) {
  if (bytes < kLargeResult) return;
  keepHeap();
  const auto place = reinterpret_cast<std::uintptr_t>(data), first = place / kHugePage * kHugePage;
  const auto end = (place + bytes + kHugePage - 1) / kHugePage * kHugePage;
  wishHugePages(reinterpret_cast<void*>(first), end - first);
}

// The size of so many numbers, or of whatever else; counts that no memory holds are out of memory.
template <typename T>
std::size_t bytesOf(Index count) {
  if (count < 0 || static_cast<std::size_t>(count) > SIZE_MAX / (4 * sizeof(T))) throw std::bad_alloc();
  return static_cast<std::size_t>(count) * sizeof(T);
}

// Whether so many entries can be counted in 32 bits, as their places are: else they are out of memory.
inline void require32Bits(Index entries) {
  if (entries > Index{UINT32_MAX}) throw std::bad_alloc();
}

// An array of numbers, zero initially. Pages that are never touched take no memory.
template <typename T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(Index count) : data_(allocate(count)) {}

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  T& operator[](Index index) { return data_.get()[index]; }
  const T& operator[](Index index) const { return data_.get()[index]; }

 private:
  struct Release {
    std::size_t mapped = 0;  // bytes; 0: from the heap
    void* block = nullptr;   // of the heap, in which the numbers lie
    void operator()(T* data) const {
      if (mapped > 0) return unmapPages(data, mapped);
      kExactBlocks ? freeAligned(block) : std::free(block);
    }
  };
  using Owner = std::unique_ptr<T, Release>;

  static Owner allocate(Index count) {
    if (count == 0) return {};
    const std::size_t bytes = bytesOf<T>(count) + (kExactBlocks ? 0 : kCacheLine);
    if (kExactBlocks || bytes < kHugePage / 2) {
      return fromHeap(bytes);
    }
    const std::size_t mapped = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    void* pages = mapPages(mapped);
    wishHugePages(pages, mapped);
    return Owner(static_cast<T*>(pages), Release{mapped});
  }

  // In a block with room to align them: glibc takes four times as long for aligned blocks, 70 ns on a Sapphire Rapids.
  static Owner fromHeap(std::size_t bytes) {
    std::size_t room = bytes + (kExactBlocks ? 0 : kCacheLine);
    void* const block = kExactBlocks ? allocateAligned(kCacheLine, bytes) : std::malloc(room);
    if (block == nullptr) throw std::bad_alloc();
    void* data = block;
    std::align(kCacheLine, bytes, data, room);
    return Owner(static_cast<T*>(std::memset(data, 0, bytes)), Release{0, block});
  }

  Owner data_;
};

// Memory of a size in bytes, aligned to cache lines, for what lives no longer than a call: the first touch of a page
// costs more than most calls, and the system reclaims freed pages.
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
  explicit Borrowed(Index count) : block_(SpareMemory::take(bytesOf<T>(count))) {}

  T* data() { return static_cast<T*>(block_.get()); }
  const T* data() const { return static_cast<const T*>(block_.get()); }
  T& operator[](Index index) { return data()[index]; }
  const T& operator[](Index index) const { return data()[index]; }
  explicit operator bool() const { return block_ != nullptr; }

 private:
  SpareMemory::Block block_;
};

}  // namespace snnjax
