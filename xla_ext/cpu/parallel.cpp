#include "parallel.hpp"

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "floating_point.hpp"
#include "system.hpp"

namespace snnjax {
namespace {

// Outlives the call that made it: the pool may start a helper only after all the work is done.
class SharedWork {
 public:
  SharedWork(Index tasks, const std::function<void(Index, Index)>& work) : tasks_(tasks), work_(&work) {
    std::fegetenv(&modes_);
  }

  // What a helper does, which may begin before its caller goes on.
  void help() {
    // Where two cores are almost always busy, Linux starts a helper on its caller's core, takes turns between them and
    // leaves the other core idle for up to 4 ms: 6 % of a training step of a deep network.
    if (next_.load() < tasks_) leaveCore(core_);
    work(workers_.fetch_add(1));
  }

  // The caller is worker 0.
  void work(Index worker) {
    const FloatingPoint as_caller(&modes_);
    for (Index task = next_.fetch_add(1); task < tasks_; task = next_.fetch_add(1)) {
      try {
        (*work_)(task, worker);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
      }
      if (done_.fetch_add(1) + 1 == tasks_) done_.notify_all();
    }
  }

  void wait() {
    for (Index done = done_.load(); done < tasks_; done = done_.load()) done_.wait(done);
    // Its last owner is the caller, whichever thread is the last one here.
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  const Index tasks_;
  const std::function<void(Index, Index)>* work_;  // alive while a task is left
  std::atomic<Index> next_{0}, done_{0}, workers_{1};
  const int core_ = currentCore();  // of the caller
  std::fenv_t modes_;               // of the caller
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace

Threads::Threads(std::function<void(Task)> schedule, Index count)
    : schedule_(std::move(schedule)), count_(std::max<Index>(count, 1)) {}

void Threads::run(Index tasks, const std::function<void(Index, Index)>& work) const {
  const Index helpers = std::min(count_, tasks) - 1;
  if (helpers <= 0) {
    for (Index task = 0; task < tasks; ++task) work(task, 0);
    return;
  }
  const auto shared = std::make_shared<SharedWork>(tasks, work);
  try {
    for (Index helper = 0; helper < helpers; ++helper) schedule_([shared] { shared->help(); });
  } catch (...) {
    // Scheduled tasks need `work`, so this call cannot return before it is done, by fewer threads if need be.
  }
  shared->work(0);
  shared->wait();
}

}  // namespace snnjax
