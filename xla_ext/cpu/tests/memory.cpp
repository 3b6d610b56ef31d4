// Memory that is kept from call to call: given back by destructors, which must not fail, and by threads that may
// outlive the objects of the process.
#include "cpu/memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#if defined(__GLIBC__)
#include <sys/resource.h>
#endif

#include "check.hpp"

namespace {

std::atomic<bool> is_heap_empty = false;

}  // namespace

// Not inlined, or the compiler takes the pair of them for a mistake.
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* memory = is_heap_empty ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using snnjax::Borrowed;
using snnjax::Index;
using snnjax::SpareMemory;

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

// Were anything allocated there, std::terminate would end the process.
void blocksAreGivenBackWithoutAllocating() {
  std::vector<SpareMemory::Block> blocks;
  for (std::size_t i = 0; i < 100; ++i) blocks.push_back(SpareMemory::take((i % 8 + 1) * kMebibyte));  // 450 MiB
  is_heap_empty = true;
  for (SpareMemory::Block& block : blocks) block.reset();  // the first ones make room for the last
  is_heap_empty = false;
}

void theBlockUsedLastComesFirst() {
  if (snnjax::kExactBlocks) return;  // none is used twice
  SpareMemory::Block first = SpareMemory::take(5 * kMebibyte), second = SpareMemory::take(5 * kMebibyte);
  const void *const a = first.get(), *const b = second.get();
  first.reset();
  second.reset();
  CHECK(SpareMemory::take(5 * kMebibyte).get() == b);  // and back again, at once
  first = SpareMemory::take(5 * kMebibyte);
  second = SpareMemory::take(5 * kMebibyte);
  CHECK(first.get() == b);
  CHECK(second.get() == a);
}

void aLargerBlockServesAsWell() {
  if (snnjax::kExactBlocks) return;
  SpareMemory::Block large = SpareMemory::take(48 * kMebibyte);
  const void* const place = large.get();
  large.reset();
  const SpareMemory::Block small = SpareMemory::take(40 * kMebibyte);
  CHECK(small.get() == place);
  CHECK(SpareMemory::take(48 * kMebibyte).get() != place);
}

// Every order of giving back and taking leaves the list whole: each block belongs to one owner.
void noBlockHasTwoOwners() {
  std::vector<SpareMemory::Block> blocks(64);
  std::uint32_t state = 1;
  for (int round = 0; round < 2'000; ++round) {
    state = state * 1664525U + 1013904223U;  // Numerical Recipes' generator
    const std::size_t place = (state >> 8) % blocks.size();
    if (blocks[place]) {
      CHECK_EQUAL(*static_cast<std::size_t*>(blocks[place].get()), place);
      blocks[place].reset();
    } else {
      blocks[place] = SpareMemory::take(kMebibyte << ((state >> 16) % 6));  // 1 to 32 MiB: some make others go
      *static_cast<std::size_t*>(blocks[place].get()) = place;
    }
  }
}

// Of many sizes, given back in one order and taken in another: each has room for what was asked for.
void blocksOfManySizesLieApart() {
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = 1; bytes < 4 * kMebibyte; bytes += bytes / 7 + 1) sizes.push_back(bytes);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::pair<std::uintptr_t, std::size_t>> places;
    std::vector<SpareMemory::Block> blocks;
    for (const std::size_t bytes : sizes) {
      blocks.push_back(SpareMemory::take(bytes));
      places.emplace_back(reinterpret_cast<std::uintptr_t>(blocks.back().get()), bytes);
      std::memset(blocks.back().get(), 1, bytes);
    }
    std::sort(places.begin(), places.end());
    for (std::size_t i = 0; i + 1 < places.size(); ++i) {
      CHECK(places[i].first + places[i].second <= places[i + 1].first);
    }
    std::rotate(sizes.begin(), sizes.begin() + 31, sizes.end());
  }
}

void manyThreadsShareTheBlocks() {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&wrong, thread] {
      for (std::size_t round = 0; round < 1000; ++round) {
        Borrowed<std::size_t> block(static_cast<Index>(1000 + 5000 * (round % 5)));
        block[0] = thread;
        std::this_thread::yield();
        wrong += block[0] == thread ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQUAL(wrong.load(), 0);
}

void absurdCountsAreOutOfMemory() {
  for (const Index count : {Index{-1}, Index{1} << 62, (Index{1} << 62) + 1, std::numeric_limits<Index>::max()}) {
    CHECK_THROWS(Borrowed<std::uint32_t>(count), "bad_alloc");
    CHECK_THROWS(snnjax::Buffer<std::uint32_t>(count), "bad_alloc");
  }
  CHECK_THROWS(snnjax::require32Bits(Index{1} << 32), "bad_alloc");
  snnjax::require32Bits((Index{1} << 32) - 1);
}

// Whether huge pages are wished for where this lies, as Linux reports it.
bool isWished(const void* address) {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/smaps");
  bool is_here = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t first = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &end) == 2) is_here = first <= place && place < end;
    if (is_here && line.starts_with("VmFlags:")) return line.find(" hg") != line.npos;
  }
  return false;
}

// Small memory of XLA is left as it is: what comes to lie there later has not asked for huge pages.
void onlyLargeResultsAskForHugePages() {
  using Memory = std::unique_ptr<char, decltype([](char* data) { std::free(data); })>;
  const auto wish = [](std::size_t bytes) {
    Memory memory(static_cast<char*>(std::malloc(bytes)));
    snnjax::wishHugePagesForResult(memory.get(), bytes);
    return memory;
  };
  const snnjax::Buffer<float> own(snnjax::kLargeResult);
  if (snnjax::kExactBlocks || !isWished(own.data())) return;  // nobody wishes, or nobody reports it
  const Memory small = wish(snnjax::kLargeResult - 1);
  CHECK(!isWished(small.get() + snnjax::kLargeResult / 2));
  const Memory large = wish(snnjax::kLargeResult);
  for (const std::size_t place : {std::size_t{0}, snnjax::kLargeResult - 1}) CHECK(isWished(large.get() + place));
}

// A thread that takes and gives back what is larger than a piece of its arena finds it again, page by page.
void theHeapKeepsWhatThreadsGiveBack() {
#if defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)  // which has a heap of its own, as the address sanitizer
  if (snnjax::kExactBlocks || std::getenv("GLIBC_TUNABLES") != nullptr) return;  // perhaps with settings of the heap
  snnjax::keepHeap();
  long faults = 0;
  std::thread([&faults] {
    for (int round = 0; round < 3; ++round) {
      rusage before{}, after{};
      getrusage(RUSAGE_THREAD, &before);
      std::vector<std::unique_ptr<char[]>> blocks;
      for (int i = 0; i < 4; ++i) {
        blocks.emplace_back(new char[24 * kMebibyte]);
        std::memset(blocks.back().get(), 1, 24 * kMebibyte);
      }
      blocks.clear();
      getrusage(RUSAGE_THREAD, &after);
      faults = after.ru_minflt - before.ru_minflt;
    }
  }).join();
  CHECK(faults < 100);  // 96 MiB are 24,576 small pages
#endif
}

// Runs after the destructors of what was made after it was registered.
void memoryOutlivesStaticObjects() {
  for (int round = 0; round < 2; ++round) {
    Borrowed<float> late(1 << 18);
    late[0] = 1.0F;
    late[(1 << 18) - 1] = 1.0F;
  }
  noBlockHasTwoOwners();
  if (check::failures > 0) std::_Exit(check::failures);
}

}  // namespace

int main() {
  std::atexit(memoryOutlivesStaticObjects);
  onlyLargeResultsAskForHugePages();  // before the heap has memory that others have wished for
  blocksAreGivenBackWithoutAllocating();
  theBlockUsedLastComesFirst();
  aLargerBlockServesAsWell();
  noBlockHasTwoOwners();
  blocksOfManySizesLieApart();
  manyThreadsShareTheBlocks();
  absurdCountsAreOutOfMemory();
  theHeapKeepsWhatThreadsGiveBack();
  return check::failures;
}
