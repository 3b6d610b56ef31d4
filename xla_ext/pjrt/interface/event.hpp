// Events: the end of a run, the arrival of an array.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "pjrt/interface/errors.hpp"

namespace snnjax::pjrt {

// Completes once, with success or failure. Any thread may wait for it or register a callback.
class Completion {
 public:
  // A completed event.
  static const std::shared_ptr<Completion>& done();

  void finish(std::optional<Failure> failure = std::nullopt);
  bool isReady() const { return ready_.load(std::memory_order_acquire); }
  // Of one that is ready.
  const std::optional<Failure>& failure() const { return failure_; }
  void wait();
  // Called at once if the event is ready, else by the thread that completes it.
  void onReady(OnReady callback, void* user_arg);

 private:
  std::atomic<bool> ready_ = false;
  std::optional<Failure> failure_;  // written before ready_
  std::mutex mutex_;
  std::condition_variable condition_;
  std::vector<std::pair<OnReady, void*>> callbacks_;
};

struct Event {
  std::shared_ptr<Completion> completion;
};

void addEventFunctions(Table& table);

}  // namespace snnjax::pjrt
