// The queue: first in, first out, on one thread at a time, and queries never wait for a run.
#include "pjrt/devices/queue.hpp"

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

using snnjax::pjrt::Queue;
using Kind = Queue::Kind;

// Holds a queue's thread until it is let go.
class Gate {
 public:
  explicit Gate(Queue& queue) {
    queue.push(
        [this] {
          entered_.set_value();
          open_.get_future().wait();
        },
        Kind::kRun);
    entered_.get_future().wait();
  }
  void open() { open_.set_value(); }

 private:
  std::promise<void> entered_, open_;
};

void tasksRunInTheirOrder() {
  Queue queue;
  std::vector<int> order;
  for (int i = 0; i < 1000; ++i)
    queue.push([&order, i] { order.push_back(i); }, i % 3 == 0 ? Kind::kShort : Kind::kRun);
  queue.drain();
  CHECK_EQUAL(order.size(), std::size_t{1000});
  for (int i = 0; i < 1000; ++i) CHECK_EQUAL(order[static_cast<std::size_t>(i)], i);
}

void whatWorksOnThingsAtHandComesNext() {
  Queue queue;
  std::vector<int> order;
  CHECK(queue.isIdle());
  Gate gate(queue);
  CHECK(!queue.isIdle());
  queue.push([&order] { order.push_back(1); }, Kind::kRun);
  queue.push([&order] { order.push_back(2); }, Kind::kShort);
  queue.push([&order] { order.push_back(0); }, Kind::kNext);
  gate.open();
  queue.drain();
  CHECK((order == std::vector<int>{0, 1, 2}));
}

void shortTasksRunOnTheCallersThreadOfAnIdleQueue() {
  Queue queue;
  const auto caller = std::this_thread::get_id();
  std::thread::id seen;
  for (const Kind kind : {Kind::kShort, Kind::kNext}) {
    queue.push([&seen] { seen = std::this_thread::get_id(); }, kind);
    CHECK(seen == caller);
  }
  queue.push([&seen] { seen = std::this_thread::get_id(); }, Kind::kRun);
  queue.drain();
  CHECK(seen != caller);
  Gate gate(queue);
  queue.push([&seen] { seen = std::this_thread::get_id(); }, Kind::kShort);
  gate.open();
  queue.drain();
  CHECK(seen != caller);
}

void onlyTasksAreInside() {
  Queue queue;
  std::string message;
  queue.push([&message] { message = check::messageOf([] { Queue::refuseInside("execute"); }); }, Kind::kShort);
  CHECK_EQUAL(message,
              std::string("execute: `callback` must not use the IPU that waits for it, got a call. Use what it is "
                          "given, or the CPU."));
  CHECK_EQUAL(check::messageOf([] { Queue::refuseInside("execute"); }), std::string());
}

void threadsPushAtOnceAndOneTaskRunsAtATime() {
  Queue queue;
  std::atomic<int> running = 0, overlaps = 0;
  int done = 0;  // of one thread at a time
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 500; ++i) {
        const auto task = [&] {
          if (++running != 1) ++overlaps;
          ++done;
          --running;
        };
        queue.push(task, static_cast<Kind>((thread + i) % 3));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  queue.drain();
  CHECK_EQUAL(done, 8 * 500);
  CHECK_EQUAL(overlaps.load(), 0);
}

void aQueueEndsAfterItsLastTask() {
  int done = 0;
  {
    Queue queue;
    for (int i = 0; i < 100; ++i) queue.push([&done] { ++done; }, Kind::kRun);
    // A task enqueued by a task, as by a program that is destroyed with its last run.
    queue.push([&queue, &done] { queue.push([&done] { ++done; }, Kind::kShort); }, Kind::kRun);
  }
  CHECK_EQUAL(done, 101);
}

}  // namespace

int main() {
  tasksRunInTheirOrder();
  whatWorksOnThingsAtHandComesNext();
  shortTasksRunOnTheCallersThreadOfAnIdleQueue();
  onlyTasksAreInside();
  threadsPushAtOnceAndOneTaskRunsAtATime();
  aQueueEndsAfterItsLastTask();
  return check::failures;
}
