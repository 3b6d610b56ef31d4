// Threads of the host that share out numbered tasks. Which thread takes which task is arbitrary, and no result depends
// on it: helpers compute as tiles do, and so must who calls run().
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace ipu_model {

class ThreadPool {
 public:
  using Work = std::function<void(std::size_t task, std::size_t thread)>;

  // The process's pool of that size: engines share it, as long as one of them lives.
  static std::shared_ptr<ThreadPool> shared(std::size_t threads);

  // `threads` in all, the calling one among them.
  explicit ThreadPool(std::size_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t threads() const { return helpers_.size() + 1; }
  // Returns when all tasks are done; throws the first exception that one of them threw. While another caller has the
  // helpers, the calling thread works alone.
  void run(std::size_t tasks, const Work& work);

 private:
  void help(std::size_t thread);
  void take(std::size_t thread);

  std::mutex callers_;  // of the one that has the helpers
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::size_t round_ = 0;    // of run()
  std::size_t working_ = 0;  // helpers that have not finished the round
  bool stop_ = false;
  const Work* work_ = nullptr;
  std::size_t tasks_ = 0;
  std::atomic<std::size_t> next_{0};
  std::exception_ptr error_;
  std::vector<std::thread> helpers_;
};

}  // namespace ipu_model
