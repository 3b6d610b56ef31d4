#include "system.hpp"

#include <cstdint>
#include <cstdlib>
#include <new>
#include <string_view>

// Behind all other headers: Windows' own defines words such as `near` as empty macros, and takes them from whatever
// comes after it.
#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <malloc.h>
#include <windows.h>
#else
#include <sys/mman.h>
#include <unistd.h>
#endif
#if defined(__linux__)
#include <sched.h>
#endif
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace snnjax {

#if defined(__GLIBC__)
namespace {

// Whether the environment has settings of what the heap keeps, for glibc.
bool hasHeapSettings() {
  for (const char* name : {"MALLOC_TOP_PAD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  const char* const tunables = std::getenv("GLIBC_TUNABLES");
  if (tunables == nullptr) return false;
  const std::string_view all(tunables);
  for (const char* name : {"malloc.top_pad", "malloc.trim_threshold", "malloc.mmap_"}) {
    if (all.find(name) != all.npos) return true;
  }
  return false;
}

}  // namespace
#endif

void* allocateAligned(std::size_t alignment, std::size_t bytes) {
#if defined(_WIN32)
  void* data = _aligned_malloc(bytes, alignment);
#else
  void* data = nullptr;
  if (posix_memalign(&data, alignment, bytes) != 0) data = nullptr;
#endif
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

void freeAligned(void* data) noexcept {
#if defined(_WIN32)
  _aligned_free(data);
#else
  std::free(data);
#endif
}

void* mapPages(std::size_t bytes) {
#if defined(_WIN32)
  void* pages = VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (pages == nullptr) throw std::bad_alloc();
#else
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
#endif
  return pages;
}

void unmapPages(void* pages, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(_WIN32)
  VirtualFree(pages, 0, MEM_RELEASE);
#else
  munmap(pages, bytes);
#endif
}

void wishHugePages([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(MADV_HUGEPAGE)
  const auto first = (reinterpret_cast<std::uintptr_t>(data) + kHugePage - 1) / kHugePage * kHugePage;
  const auto end = (reinterpret_cast<std::uintptr_t>(data) + bytes) / kHugePage * kHugePage;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
#endif
}

void trimHeap() noexcept {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

void keepHeap() noexcept {
#if defined(__GLIBC__)
  // The first two are what glibc comes to by itself with large arrays, but not after a setting of the third.
  static const bool once [[maybe_unused]] = [] {
    constexpr int kPiece = 64 << 20;
    return !hasHeapSettings() && mallopt(M_MMAP_THRESHOLD, kPiece / 2) == 1 && mallopt(M_TRIM_THRESHOLD, kPiece) == 1 &&
           mallopt(M_TOP_PAD, kPiece) == 1;
  }();
#endif
}

int currentCore() noexcept {
#if defined(__linux__)
  return sched_getcpu();
#else
  return -1;
#endif
}

void leaveCore([[maybe_unused]] int core) noexcept {
#if defined(__linux__)
  cpu_set_t own;
  if (core < 0 || core != currentCore() || sched_getaffinity(0, sizeof own, &own) != 0) return;
  cpu_set_t others = own;
  CPU_CLR(core, &others);
  if (sched_setaffinity(0, sizeof others, &others) == 0) sched_setaffinity(0, sizeof own, &own);
#endif
}

std::size_t secondLevelCache() noexcept {
#if defined(__APPLE__)
  // Of the fast cores, several of which share one.
  std::int64_t bytes = 0;
  std::int32_t cores = 0;
  std::size_t size = sizeof bytes;
  if (sysctlbyname("hw.perflevel0.l2cachesize", &bytes, &size, nullptr, 0) != 0) return 0;
  size = sizeof cores;
  if (sysctlbyname("hw.perflevel0.cpusperl2", &cores, &size, nullptr, 0) != 0) return 0;
  return bytes > 0 && cores > 0 ? static_cast<std::size_t>(bytes / cores) : 0;
#elif defined(_SC_LEVEL2_CACHE_SIZE)
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
#else
  return 0;
#endif
}

}  // namespace snnjax
