// Work shared by a pool of threads and the thread that asks for it.
#pragma once

#include <functional>

#include "kernels.hpp"

namespace snnjax {

class Threads {
 public:
  using Task = std::function<void()>;

  // `schedule` hands a task to a pool, or throws if the pool refuses it; up to `count` threads, the caller included,
  // work at once.
  Threads(std::function<void(Task)> schedule, Index count);

  Index count() const { return count_; }

  // Runs work(task, worker) for every task in [0, tasks) and returns when all are done. `worker` in [0, count())
  // belongs to one thread at a time. The caller takes tasks itself and waits only for those that another thread has
  // begun, so a busy pool delays nothing and a pool without threads cannot block. Every task computes in the caller's
  // floating-point environment (rounding, denormal numbers): otherwise its bits would depend on the thread that took
  // it. Rethrows the first exception of the work.
  void run(Index tasks, const std::function<void(Index task, Index worker)>& work) const;

 private:
  std::function<void(Task)> schedule_;
  Index count_;
};

// The threads for this many multiplications: a few take less time than waking another thread.
inline Threads threadsFor(Index products, const Threads& threads) {
  constexpr Index kWorthWaking = 400'000;
  return products < kWorthWaking ? Threads({}, 1) : threads;
}

}  // namespace snnjax
