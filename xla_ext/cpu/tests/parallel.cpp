// Work shared by threads: all of it is done, whatever the pool does, and every task computes as its caller does.
#include "cpu/parallel.hpp"

#include <atomic>
#include <cfenv>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

using snnjax::Index;
using snnjax::Threads;

// A pool that keeps what it is given until it is told to run it.
struct LatePool {
  std::vector<Threads::Task> tasks;

  void runAll() {
    std::vector<std::thread> threads;
    for (Threads::Task& task : tasks) threads.emplace_back(std::move(task));
    for (std::thread& thread : threads) thread.join();
  }
};

void workIsDoneByAPoolThatTakesNoMoreTasks() {
  LatePool pool;
  const auto schedule = [&pool](Threads::Task task) {
    if (pool.tasks.size() == 2) throw std::bad_alloc();
    pool.tasks.push_back(std::move(task));
  };
  std::atomic<Index> sum = 0;
  Threads(schedule, 8).run(100, [&sum](Index task, Index) { sum += task; });
  CHECK_EQUAL(sum.load(), Index{4950});
  pool.runAll();  // late helpers find nothing left, and touch no work that is gone
  CHECK_EQUAL(sum.load(), Index{4950});
}

void errorsOfTheWorkReachTheCaller() {
  const Threads threads([](const Threads::Task&) { throw std::bad_alloc(); }, 4);
  CHECK_THROWS(threads.run(9,
                           [](Index task, Index) {
                             if (task == 3) throw std::runtime_error("third");
                           }),
               "third");
}

void everyTaskHasTheEnvironmentOfItsCaller() {
  std::atomic<int> upward = 0, kept = 0, started = 0;
  std::vector<std::thread> pool;
  const auto schedule = [&](Threads::Task task) {
    pool.emplace_back([&kept, &started, own = std::move(task)] {
      std::fesetround(FE_DOWNWARD);
      ++started;
      own();
      kept += std::fegetround() == FE_DOWNWARD ? 1 : 0;
    });
  };
  std::fesetround(FE_UPWARD);
  Threads(schedule, 3).run(64, [&](Index, Index worker) {
    while (worker == 0 && started < 2) std::this_thread::yield();  // the helpers take some of the tasks
    upward += std::fegetround() == FE_UPWARD ? 1 : 0;
  });
  for (std::thread& thread : pool) thread.join();
  CHECK_EQUAL(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
  CHECK_EQUAL(upward.load(), 64);
  CHECK_EQUAL(kept.load(), 2);
}

}  // namespace

int main() {
  workIsDoneByAPoolThatTakesNoMoreTasks();
  errorsOfTheWorkReachTheCaller();
  everyTaskHasTheEnvironmentOfItsCaller();
  return check::failures;
}
