// Steps of time by several threads.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "cpu/parallel.hpp"

namespace snnjax {

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Calls work(block, step) once for each block and step; all blocks have done a step before one begins the next. A
// thread keeps to its own blocks, whose numbers are in its caches, and does those of a thread that has not come, or is
// not scheduled: so none waits for a thread that does not run.
template <typename Work>
void runSteps(Index steps, Index blocks, const Threads& threads, const Work& work) {
  const Index workers = std::min(blocks, threads.count());
  if (workers == 1) {
    for (Index step = 0; step < steps; ++step) {
      for (Index block = 0; block < blocks; ++block) work(block, step);
    }
    return;
  }
  constexpr Index kPatience = 2000;  // turns, some 50 us, before a block of another thread is taken
  std::vector<std::atomic<Index>> begun(static_cast<std::size_t>(blocks));  // steps of each block
  std::atomic<Index> done{0}, here{0};                                      // steps of all blocks; threads
  std::atomic<bool> failed{false};
  threads.run(workers, [&](Index own, Index) {
    const auto take = [&](Index block, Index step) {
      Index expected = step;
      if (!begun[static_cast<std::size_t>(block)].compare_exchange_strong(expected, step + 1)) return;
      try {
        work(block, step);
      } catch (...) {
        failed = true;
        throw;
      }
      done.fetch_add(1);
    };
    here.fetch_add(1);
    for (Index step = done.load() / blocks; step < steps && !failed; ++step) {
      for (Index block = own; block < blocks; block += workers) take(block, step);
      for (Index turn = 0; done.load() < (step + 1) * blocks && !failed; ++turn) {
        if (turn < kPatience && here.load() == workers) {
          pause();
          continue;
        }
        for (Index block = 0; block < blocks; ++block) take(block, step);
        std::this_thread::yield();
      }
    }
  });
}

}  // namespace snnjax
