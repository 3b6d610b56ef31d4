#include "pjrt/interface/event.hpp"

#include "pjrt/interface/table.hpp"

namespace snnjax::pjrt {

const std::shared_ptr<Completion>& Completion::done() {
  // Never destroyed: buffers may outlive the library's other objects at the end of a process.
  static const auto& ready = *new std::shared_ptr<Completion>([] {
    auto completion = std::make_shared<Completion>();
    completion->finish();
    return completion;
  }());
  return ready;
}

void Completion::finish(std::optional<Failure> failure) {
  std::vector<std::pair<OnReady, void*>> callbacks;
  {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
    ready_.store(true, std::memory_order_release);
    callbacks.swap(callbacks_);
  }
  condition_.notify_all();
  for (const auto& [callback, user_arg] : callbacks) callback(toError(failure_), user_arg);
}

void Completion::wait() {
  if (isReady()) return;
  std::unique_lock lock(mutex_);
  condition_.wait(lock, [this] { return isReady(); });
}

void Completion::onReady(OnReady callback, void* user_arg) {
  {
    const std::lock_guard lock(mutex_);
    if (!isReady()) {
      callbacks_.emplace_back(callback, user_arg);
      return;
    }
  }
  callback(toError(failure_), user_arg);
}

namespace {

// PJRT returns the failure of an event as that of the function.
void throwFailure(const Completion& completion) {
  if (const auto& failure = completion.failure()) throw *failure;
}

}  // namespace

void addEventFunctions(Table& table) {
  table.add("Event_Destroy", [](EventDestroyArgs& args) { delete args.event; });
  table.add("Event_IsReady", [](EventIsReadyArgs& args) { args.is_ready = args.event->completion->isReady(); });
  table.add("Event_Error", [](EventErrorArgs& args) {
    if (args.event->completion->isReady()) throwFailure(*args.event->completion);
  });
  table.add("Event_Await", [](EventAwaitArgs& args) {
    args.event->completion->wait();
    throwFailure(*args.event->completion);
  });
  table.add("Event_OnReady",
            [](EventOnReadyArgs& args) { args.event->completion->onReady(args.callback, args.user_arg); });
}

}  // namespace snnjax::pjrt
