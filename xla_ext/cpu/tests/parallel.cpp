// Work shared by threads: all of it is done, whatever the pool does, and every task computes as its caller does.
#include "cpu/parallel.hpp"

#include <atomic>
#include <cfenv>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif

#include "check.hpp"
#include "cpu/simulation/steps.hpp"
#include "cpu/system.hpp"

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

// Blocks write what all of them read in the next step, as those of a simulation do with their spikes, whether the pool
// brings all its threads, some, or one after the other.
void stepsFindWhatAllBlocksDidBefore() {
  constexpr Index kSteps = 300, kBlocks = 5;
  for (const std::size_t helpers : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
    std::vector<std::thread> pool;
    const auto schedule = [&](Threads::Task task) {
      if (pool.size() == helpers) throw std::bad_alloc();
      pool.emplace_back(std::move(task));
    };
    std::vector<Index> rows[2] = {std::vector<Index>(kBlocks, 1), std::vector<Index>(kBlocks, 1)};
    std::vector<Index> own(kBlocks, 0);  // what a block keeps from step to step, whichever thread does it
    snnjax::runSteps(kSteps, kBlocks, Threads(schedule, 4), [&](Index block, Index step) {
      Index sum = 0;
      for (const Index each : rows[(step + 1) % 2]) sum += each;
      rows[step % 2][static_cast<std::size_t>(block)] = sum % 1009 + block;
      own[static_cast<std::size_t>(block)] += sum;
    });
    for (std::thread& thread : pool) thread.join();
    Index row[kBlocks] = {1, 1, 1, 1, 1}, kept = 0;
    for (Index step = 0; step < kSteps; ++step) {
      Index sum = 0;
      for (const Index each : row) sum += each;
      for (Index block = 0; block < kBlocks; ++block) row[block] = sum % 1009 + block;
      kept += sum;
    }
    for (const Index each : own) CHECK_EQUAL(each, kept);
  }
}

void stepsEndWithTheErrorOfABlock() {
  std::vector<std::thread> pool;
  const auto schedule = [&](Threads::Task task) { pool.emplace_back(std::move(task)); };
  CHECK_THROWS(snnjax::runSteps(9, 4, Threads(schedule, 3),
                                [](Index block, Index step) {
                                  if (block == 2 && step == 5) throw std::runtime_error("fifth");
                                }),
               "fifth");
  for (std::thread& thread : pool) thread.join();
}

// A thread goes on on another core if it has one, and may run where it might before.
void aThreadLeavesACore() {
#if defined(__linux__)
  cpu_set_t before, after;
  CHECK_EQUAL(sched_getaffinity(0, sizeof before, &before), 0);
  bool left = CPU_COUNT(&before) == 1;
  for (int attempt = 0; attempt < 100 && !left; ++attempt) {  // a busy machine may bring it back at once
    const int core = snnjax::currentCore();
    snnjax::leaveCore(core);
    left = snnjax::currentCore() != core;
  }
  CHECK_EQUAL(left, true);
  snnjax::leaveCore(snnjax::currentCore());
  CHECK_EQUAL(sched_getaffinity(0, sizeof after, &after), 0);
  CHECK_EQUAL(CPU_EQUAL(&before, &after) != 0, true);
#endif
}

}  // namespace

int main() {
  aThreadLeavesACore();
  stepsFindWhatAllBlocksDidBefore();
  stepsEndWithTheErrorOfABlock();
  workIsDoneByAPoolThatTakesNoMoreTasks();
  errorsOfTheWorkReachTheCaller();
  everyTaskHasTheEnvironmentOfItsCaller();
  return check::failures;
}
