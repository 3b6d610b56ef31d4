// Called on the host when a program requests or delivers data.
#pragma once

#include <functional>
#include <memory>
#include <poplar/ArrayRef.hpp>
#include <type_traits>
#include <utility>

namespace poplar {

class StreamCallback {
 public:
  enum class Result { Success, NotAvailable };

  virtual ~StreamCallback() = default;
  // Elements of one copy to the device, if they are ready: then `fetch` is not called. The model asks just before it.
  virtual Result prefetch(void*) { return Result::NotAvailable; }
  virtual void invalidatePrefetched() {}
  // Reads or writes the elements of one copy at `data`.
  virtual void fetch(void* data) = 0;
  virtual void complete() {}
};

using LegacyStreamCallback = std::function<void(void*)>;

// Either of the two forms of a callback: an object, or a function of the place of the data.
class StreamCallbackHandle {
 public:
  template <typename Callback,
            typename = typename std::enable_if<std::is_base_of<StreamCallback, Callback>::value>::type>
  StreamCallbackHandle(std::unique_ptr<Callback> callback) : callback_(std::move(callback)) {}
  template <typename Function, typename = decltype(std::declval<Function&>()(std::declval<void*>()))>
  StreamCallbackHandle(Function&& function) : callback_(std::make_shared<Call>(std::forward<Function>(function))) {}

  const std::shared_ptr<StreamCallback>& callback() const { return callback_; }

 private:
  struct Call : StreamCallback {
    explicit Call(LegacyStreamCallback call) : function(std::move(call)) {}
    void fetch(void* data) override { function(data); }
    LegacyStreamCallback function;
  };
  std::shared_ptr<StreamCallback> callback_;
};

// A function of the host that a program calls: inputs and outputs, one buffer each.
class HostCallback {
 public:
  virtual ~HostCallback() = default;
  virtual void callback(ArrayRef<const void*> inputs, ArrayRef<void*> outputs) = 0;
};

using HostFunctionCallback = std::function<void(ArrayRef<const void*>, ArrayRef<void*>)>;

class HostCallbackHandle {
 public:
  template <typename Callback, typename = typename std::enable_if<std::is_base_of<HostCallback, Callback>::value>::type>
  HostCallbackHandle(std::unique_ptr<Callback> callback) : callback_(std::move(callback)) {}
  template <typename Function, typename = decltype(std::declval<Function&>()(std::declval<ArrayRef<const void*>>(),
                                                                             std::declval<ArrayRef<void*>>()))>
  HostCallbackHandle(Function&& function) : callback_(std::make_shared<Call>(std::forward<Function>(function))) {}

  const std::shared_ptr<HostCallback>& callback() const { return callback_; }

 private:
  struct Call : HostCallback {
    explicit Call(HostFunctionCallback call) : function(std::move(call)) {}
    void callback(ArrayRef<const void*> inputs, ArrayRef<void*> outputs) override { function(inputs, outputs); }
    HostFunctionCallback function;
  };
  std::shared_ptr<HostCallback> callback_;
};

}  // namespace poplar
