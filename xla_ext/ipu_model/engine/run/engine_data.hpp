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

#include "engine/executable/plan.hpp"
#include "engine/run/counters.hpp"
#include "engine/run/thread_pool.hpp"
#include "engine/run/vertices.hpp"

namespace ipu_model {

// The host's end of a stream: a ring of copies, or a callback.
struct StreamEnd {
  std::byte* begin = nullptr;
  std::byte* end = nullptr;  // null: one copy's worth
  std::byte* next = nullptr;
  std::shared_ptr<poplar::StreamCallback> callback;

  bool connected() const { return begin != nullptr || callback != nullptr; }
};

// One replica's memory, and its vertices with fields that point there.
struct Replica {
  Replica(const Plan& plan, std::uint32_t its_number);

  std::uint32_t number;
  std::vector<std::byte> storage;
  std::byte* memory;  // aligned, in storage
  std::vector<LiveComputeSet> compute_sets;
};

class EngineData {
 public:
  EngineData(std::shared_ptr<const Plan> plan, std::size_t threads);

  const Plan& plan() const { return *plan_; }
  const Counters& counters() const { return counters_; }

  void load();
  void run(unsigned program);
  void requestStop() { stop_ = true; }

  // Of all replicas, one after the other.
  void write(const HostPlan& host, const void* from);
  void read(const HostPlan& host, void* to) const;

  StreamEnd& stream(poplar::StringRef handle);
  std::vector<std::byte>& remoteBuffer(poplar::StringRef handle, unsigned replica, std::size_t* row_bytes);
  void connectHostFunction(poplar::StringRef handle, std::shared_ptr<poplar::HostCallback> callback);
  void setPrintStream(std::ostream& stream) { print_ = &stream; }

  void setCounting(bool on) { counting_ = on; }
  void resetCounters();

 private:
  void runBlock(BlockId block);
  void runStep(const StepCompute& step);
  void runStep(const StepCopy& step);
  void runStep(const StepCrossReplica& step);
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
  std::uint64_t slowestOfActive();
  void countBusy(std::uint64_t cycles);
  void countExchange(const ExchangeCost& cost);
  void countRequests(std::uint32_t host, std::uint64_t requests);
  void countHost(std::uint32_t host, std::uint64_t cycles, std::uint64_t sync);
  void performAll(std::span<const Move> moves);
  std::int32_t scalar(const Replica& replica, std::uint32_t host) const;
  std::byte* streamPlace(StreamEnd& end, std::size_t bytes, std::vector<std::byte>& buffer);
  void pass(StreamEnd& end, std::size_t piece, bool to_host, std::span<std::byte> all);
  void passRows(const StepRemote& step, Replica& replica);
  void callHost(const StepHostCall& step, Replica& replica);
  void writeOne(const HostPlan& host, const void* from, Replica& replica) const;
  void readOne(const HostPlan& host, void* to, const Replica& replica) const;

  std::shared_ptr<const Plan> plan_;
  std::vector<Replica> replicas_;
  std::vector<Replica*> active_;  // those that run the block at hand: branches and loops may part them
  std::shared_ptr<ThreadPool> threads_;
  std::vector<ThreadCounters> thread_counters_;
  std::vector<StreamEnd> streams_;
  std::vector<std::vector<std::byte>> remote_buffers_;  // replica by replica
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
