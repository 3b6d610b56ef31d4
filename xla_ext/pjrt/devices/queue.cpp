#include "pjrt/devices/queue.hpp"

#include <utility>

#include "pjrt/interface/errors.hpp"

namespace snnjax::pjrt {
namespace {

thread_local bool inside_task = false;

void run(const Queue::Task& task) {
  inside_task = true;
  task();
  inside_task = false;
}

}  // namespace

void Queue::refuseInside(const std::string& op) {
  if (!inside_task) return;
  throw Failure(ErrorCode::kInvalidArgument,
                op + ": `callback` must not use the IPU that waits for it, got a call. Use what it is given, "
                     "or the CPU.");
}

Queue::~Queue() {
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  work_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Queue::push(Task task, Kind kind) {
  std::unique_lock lock(mutex_);
  if (kind == Kind::kRun || is_busy_ || !tasks_.empty()) {
    tasks_.insert(kind == Kind::kNext ? tasks_.begin() : tasks_.end(), std::move(task));
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    lock.unlock();
    work_.notify_one();
    return;
  }
  is_busy_ = true;
  lock.unlock();
  run(task);
  lock.lock();
  finished();
}

bool Queue::isIdle() {
  const std::lock_guard lock(mutex_);
  return tasks_.empty() && !is_busy_;
}

void Queue::drain() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return tasks_.empty() && !is_busy_; });
}

void Queue::finished() {
  is_busy_ = false;
  if (tasks_.empty() && !is_closing_) {
    idle_.notify_all();
  } else {
    work_.notify_one();
  }
}

void Queue::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return !is_busy_ && (is_closing_ || !tasks_.empty()); });
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    is_busy_ = true;
    lock.unlock();
    run(task);
    task = nullptr;  // its captures are released before anybody learns that it is done
    lock.lock();
    finished();
  }
}

}  // namespace snnjax::pjrt
