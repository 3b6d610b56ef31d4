// A plan with memory to run in.
#pragma once

#include <atomic>
#include <cstddef>
#include <iosfwd>
#include <map>
#include <memory>
#include <poplar/StreamCallback.hpp>
#include <span>
#include <string>
#include <vector>

#include "engine/counters.hpp"
#include "engine/plan.hpp"
#include "engine/thread_pool.hpp"
#include "engine/vertices.hpp"

namespace ipu_model {

// The host's end of a stream: a ring of copies, or a callback.
struct StreamEnd {
  std::byte* begin = nullptr;
  std::byte* end = nullptr;  // null: one copy's worth
  std::byte* next = nullptr;
  std::shared_ptr<poplar::StreamCallback> callback;

  bool connected() const { return begin != nullptr || callback != nullptr; }
};

class EngineData {
 public:
  EngineData(std::shared_ptr<const Plan> plan, std::size_t threads);

  const Plan& plan() const { return *plan_; }
  const Counters& counters() const { return counters_; }

  void load();
  bool isLoaded() const { return loaded_; }
  void run(unsigned program);
  void requestStop() { stop_ = true; }

  void write(const HostPlan& host, const void* from);
  void read(const HostPlan& host, void* to) const;

  StreamEnd& stream(poplar::StringRef handle);
  std::vector<std::byte>& remoteBuffer(poplar::StringRef handle, std::size_t* row_bytes);
  void connectHostFunction(poplar::StringRef handle, std::shared_ptr<poplar::HostCallback> callback);
  void setPrintStream(std::ostream& stream) { print_ = &stream; }

  void setCounting(bool on) { counting_ = on; }
  void resetCounters();

 private:
  void runBlock(BlockId block);
  void runStep(const StepCompute& step);
  void runStep(const StepCopy& step);
  void runStep(const StepStream& step);
  void runStep(const StepRemote& step);
  void runStep(const StepRepeat& step);
  void runStep(const StepWhile& step);
  void runStep(const StepSwitch& step);
  void runStep(const StepCall& step);
  void runStep(const StepHostCall& step);
  void runStep(const StepSync& step);
  void runStep(const StepPrint& step);
  void runStep(const StepError& step);
  void runStep(const StepStamp& step);

  void runTiles(std::size_t compute_set);
  void countExchange(const ExchangeCost& cost);
  void countHost(std::uint32_t host, std::uint64_t requests);
  void performAll(std::span<const Move> moves, const std::byte* from, std::byte* to);
  std::int32_t scalar(std::uint32_t host) const;
  std::byte* streamPlace(StreamEnd& end, std::size_t bytes, std::vector<std::byte>& buffer);

  std::shared_ptr<const Plan> plan_;
  std::vector<std::byte> storage_;
  std::byte* memory_ = nullptr;  // aligned, in storage_
  std::vector<LiveComputeSet> compute_sets_;
  ThreadPool threads_;
  std::vector<ThreadCounters> thread_counters_;
  std::vector<StreamEnd> streams_;
  std::vector<std::vector<std::byte>> remote_buffers_;
  std::vector<std::shared_ptr<poplar::HostCallback>> host_functions_;
  std::ostream* print_;
  Counters counters_;
  std::uint64_t clock_ = 0;  // cycles since loading, counted or not
  bool counting_ = true;
  bool loaded_ = false;
  std::atomic<bool> stop_{false};
};

void printTensor(const StepPrint& print, std::span<const std::byte> values, std::ostream& stream);

}  // namespace ipu_model
