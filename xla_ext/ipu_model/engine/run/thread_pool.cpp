#include "engine/run/thread_pool.hpp"

#include <map>
#include <utility>

#include "floating_point.hpp"

namespace ipu_model {

std::shared_ptr<ThreadPool> ThreadPool::shared(std::size_t threads) {
  static std::mutex mutex;
  // Never destroyed: threads may outlive it.
  static auto& pools = *new std::map<std::size_t, std::weak_ptr<ThreadPool>>;
  const std::lock_guard lock(mutex);
  std::shared_ptr<ThreadPool> pool = pools[threads].lock();
  if (pool == nullptr) pools[threads] = pool = std::make_shared<ThreadPool>(threads);
  return pool;
}

ThreadPool::ThreadPool(std::size_t threads) {
  for (std::size_t thread = 1; thread < threads; ++thread) helpers_.emplace_back([this, thread] { help(thread); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadPool::run(std::size_t tasks, const Work& work) {
  std::unique_lock alone(callers_, std::defer_lock);
  if (tasks < 2 || helpers_.empty() || !alone.try_lock()) {
    for (std::size_t task = 0; task < tasks; ++task) work(task, 0);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    tasks_ = tasks;
    next_ = 0;
    working_ = helpers_.size();
    ++round_;
  }
  wake_.notify_all();
  take(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return working_ == 0; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::take(std::size_t thread) {
  try {
    for (std::size_t task = next_++; task < tasks_; task = next_++) (*work_)(task, thread);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
    next_ = tasks_;
  }
}

void ThreadPool::help(std::size_t thread) {
  const snnjax::FloatingPoint as_on_tiles(FE_DFL_ENV);
  std::size_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stop_ || round_ != seen; });
    if (stop_) return;
    seen = round_;
    lock.unlock();
    take(thread);
    lock.lock();
    if (--working_ == 0) done_.notify_one();
  }
}

}  // namespace ipu_model
