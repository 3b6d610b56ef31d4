// Runs the programs of a graph.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <memory>
#include <poplar/ArrayRef.hpp>
#include <poplar/DataStream.hpp>
#include <poplar/Device.hpp>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/StreamCallback.hpp>
#include <poplar/StringRef.hpp>
#include <string>
#include <vector>

namespace ipu_model {
class EngineData;
struct Plan;
}  // namespace ipu_model

namespace poplar {

using ProgressFunc = std::function<void(int, int)>;

// Programs that have been checked, addressed and priced.
class Executable {
 public:
  explicit Executable(std::shared_ptr<const ipu_model::Plan> plan) : plan_(std::move(plan)) {}
  const std::shared_ptr<const ipu_model::Plan>& plan() const { return plan_; }  // the model's own

  // With everything that an engine needs, codelets included; valid for this build of the model and this processor
  // architecture.
  void serialize(std::ostream& out) const;
  static Executable deserialize(std::istream& in);

 private:
  std::shared_ptr<const ipu_model::Plan> plan_;
};

// Accepts Poplar's options, of which the model heeds "debug.allowOutOfMemory" and "target.workerStackSizeInBytes", and
// its own: "ipu_model.threads", the number of host threads that run vertices (all cores, or SNNJAX_IPU_THREADS).
Executable compileGraph(const Graph& graph, ArrayRef<program::Program> programs, const OptionFlags& opt = {},
                        ProgressFunc progressCallBack = {}, const DebugContext& debugContext = {});

class Engine {
 public:
  struct TimerTimePoint {
    std::chrono::steady_clock::time_point time;
  };

  Engine(const Graph& graph, ArrayRef<program::Program> programs, const OptionFlags& opt = {},
         ProgressFunc progressCallBack = {}, const DebugContext& debugContext = {});
  explicit Engine(const Executable& executable, const OptionFlags& opt = {});
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  void load(const Device& device);
  void prepare(const Device& device) { load(device); }
  void deploy() {}
  void loadAndRun(const Device& device, unsigned prog = 0);
  void run(unsigned prog = 0, const std::string& debugName = "");
  // Asks a run to end after the program it is in.
  void stop();

  // Host access to tensors of createHostWrite and createHostRead.
  void writeTensor(StringRef handle, const void* buf, const void* bufEnd);
  void readTensor(StringRef handle, void* buf, void* bufEnd);
  // From and to as many bytes as the tensor has.
  void writeTensor(StringRef handle, const void* buf);
  void readTensor(StringRef handle, void* buf);

  // The place of a stream's data: one copy's worth, or a ring of them.
  void connectStream(StringRef handle, void* begin, void* end);
  void connectStream(StringRef handle, void* p);
  void connectStream(const DataStream& stream, void* begin, void* end) { connectStream(stream.handle(), begin, end); }
  void connectStream(const DataStream& stream, void* p) { connectStream(stream.handle(), p); }
  void connectStreamToCallback(StringRef handle, StreamCallbackHandle callback);
  void connectStreamToCallback(StringRef handle, unsigned index, StreamCallbackHandle callback);
  void connectStreamToCallback(const DataStream& stream, StreamCallbackHandle callback) {
    connectStreamToCallback(stream.handle(), std::move(callback));
  }
  void connectHostFunction(StringRef handle, unsigned index, HostCallbackHandle callback);
  void copyFromRemoteBuffer(StringRef handle, void* w, unsigned repeatIndex, unsigned replicationIndex = 0);
  void copyToRemoteBuffer(void* w, StringRef handle, unsigned repeatIndex, unsigned replicationIndex = 0);
  std::vector<std::string> listStreams() const;

  void setPrintStream(std::ostream& stream);
  void setPrintTensorStream(std::ostream& stream) { setPrintStream(stream); }

  void enableExecutionProfiling();
  void disableExecutionProfiling();
  void resetExecutionProfile();
  // Cycles by phase, compute set and codelet, and memory by tile, as text; ipu_model/profile.hpp has the numbers.
  void printProfileSummary(std::ostream& stream, const OptionFlags& opt = {}) const;

  TimerTimePoint getTimeStamp();
  // Of the host, between two points of time.
  static void reportTiming(const TimerTimePoint& from, const TimerTimePoint& to, std::ostream& stream);

  ipu_model::EngineData& data() { return *data_; }  // the model's own
  const ipu_model::EngineData& data() const { return *data_; }

 private:
  std::unique_ptr<ipu_model::EngineData> data_;
};

}  // namespace poplar
