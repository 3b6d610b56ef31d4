// The queue of all work on a client's IPUs.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace snnjax::pjrt {

// Tasks run one at a time, in order of arrival, on the queue's own thread. Tasks do not throw.
//
// Anything that may wait for a run is a task: callers may hold Python's lock, which a callback of that run needs.
class Queue {
 public:
  using Task = std::function<void()>;
  enum class Kind {
    kRun,    // on the queue's thread
    kShort,  // on the caller's thread if the queue is empty, which saves waking the other
    kNext    // the same, but ahead of tasks that have not begun: its data is ready
  };

  Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue();  // after the last task

  void push(Task task, Kind kind);
  // Whether a task pushed now would be the next one.
  bool isIdle();
  // Waits until nothing is left to do.
  void drain();
  // Throws if the caller is a callback of a run, and so a task: what it waits for would come after it.
  static void refuseInside(const std::string& op);

 private:
  void work();
  void finished();  // what was begun, with the mutex held

  std::mutex mutex_;
  std::condition_variable work_;  // there is work, and nobody is doing it
  std::condition_variable idle_;
  std::deque<Task> tasks_;
  bool is_busy_ = false;
  bool is_closing_ = false;
  std::thread thread_;  // started by the first task that needs it
};

}  // namespace snnjax::pjrt
