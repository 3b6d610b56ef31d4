// What the operating system knows and gives: pages, aligned memory, cores, the size of a cache. Nothing else in cpu/
// calls it.
#pragma once

#include <cstddef>

namespace snnjax {

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;  // bytes, on x86-64 and most of aarch64

// Memory from the heap, a power of two aligned, for `freeAligned`.
void* allocateAligned(std::size_t alignment, std::size_t bytes);
void freeAligned(void* data) noexcept;

// Whole pages of zeros, for `unmapPages`.
void* mapPages(std::size_t bytes);
void unmapPages(void* pages, std::size_t bytes) noexcept;

// Asks for huge pages in memory not written yet; the system may ignore it, or know of none.
void wishHugePages(void* data, std::size_t bytes) noexcept;

// Gives the free pages of the heap back, where the heap can.
void trimHeap() noexcept;

// Lets the heap keep freed memory from now on, up to 64 MiB in each of its arenas, unless the environment has settings
// of the heap. glibc's threads have arenas in pieces of 64 MiB, and a piece without a block goes back to the system:
// that was 17 ms of core time in each 145 ms step of a network whose temporary arrays take 81 MiB, or none, by chance.
void keepHeap() noexcept;

// The core that runs the calling thread; -1 where the system does not say.
int currentCore() noexcept;

// Moves the calling thread to another of its cores if it runs on `core`. Where it may run stays as it is.
void leaveCore(int core) noexcept;

// Bytes of the second-level cache that one core has to itself; 0 if the system does not say.
std::size_t secondLevelCache() noexcept;

}  // namespace snnjax
