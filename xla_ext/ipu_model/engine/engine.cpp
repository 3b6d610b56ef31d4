// Poplar's Engine.
#include <poplar/Engine.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ostream>
#include <thread>

#include "engine/compiler/compiler.hpp"
#include "engine/run/engine_data.hpp"
#include "ipu_model/profile.hpp"

namespace poplar {
namespace {

using ipu_model::EngineData;
using ipu_model::HostPlan;
using ipu_model::Plan;

std::size_t threadsOf(const OptionFlags& options) {
  const char* text = std::getenv("SNNJAX_IPU_THREADS");
  std::string wanted = text == nullptr ? "" : text;
  if (options.contains("ipu_model.threads")) wanted = options.at("ipu_model.threads");
  if (wanted.empty()) return std::max(1U, std::thread::hardware_concurrency());
  char* end = nullptr;
  const unsigned long threads = std::strtoul(wanted.c_str(), &end, 10);
  if (*end != '\0' || threads == 0 || threads > 1024) {
    throw invalid_option("Engine: `ipu_model.threads` must be a number from 1 to 1024, got \"" + wanted +
                         "\". Leave it out to use all cores.");
  }
  return threads;
}

// "true" among the options, or else "1" in the environment.
bool ignoresEstimates(const OptionFlags& options) {
  if (options.contains("ipu_model.ignoreEstimates")) return options.at("ipu_model.ignoreEstimates") == "true";
  const char* text = std::getenv("SNNJAX_IPU_IGNORE_ESTIMATES");
  return text != nullptr && std::string(text) == "1";
}

std::uint64_t workerStackOf(const OptionFlags& options) {
  constexpr const char* kName = "target.workerStackSizeInBytes";
  if (!options.contains(kName)) return ipu_model::kWorkerStack;
  const std::string wanted = options.at(kName);
  char* end = nullptr;
  const unsigned long long bytes = std::strtoull(wanted.c_str(), &end, 0);  // in decimal, or 0x in hexadecimal
  if (wanted.empty() || *end != '\0' || wanted[0] == '-') {
    throw invalid_option("Engine: `" + std::string(kName) + "` must be a number of bytes, got \"" + wanted +
                         "\". Leave it out for " + std::to_string(ipu_model::kWorkerStack) + ".");
  }
  return bytes;
}

ipu_model::Compiler::Options compilerOptions(const OptionFlags& options) {
  const bool allows = options.contains("debug.allowOutOfMemory") && options.at("debug.allowOutOfMemory") == "true";
  return {!allows, ignoresEstimates(options), workerStackOf(options)};
}

const HostPlan& access(const Plan& plan, const std::unordered_map<std::string, std::uint32_t>& handles,
                       StringRef handle, const char* operation) {
  const auto found = handles.find(handle);
  if (found == handles.end()) {
    throw tensor_io_state_error(std::string(operation) + ": `handle` must have been made by createHost" +
                                (operation[0] == 'w' ? "Write" : "Read") + ", got \"" + handle +
                                "\". Make it before the engine.");
  }
  return plan.host[found->second];
}

const HostPlan& access(const Plan& plan, const std::unordered_map<std::string, std::uint32_t>& handles,
                       StringRef handle, std::ptrdiff_t bytes, const char* operation) {
  const HostPlan& host = access(plan, handles, handle, operation);
  const std::size_t of_all = plan.replicas * host.bytes;
  if (bytes == static_cast<std::ptrdiff_t>(of_all)) return host;
  throw tensor_io_state_error(std::string(operation) + ": `bufEnd` must lie " + std::to_string(of_all) +
                              " bytes after buf for \"" + handle + "\", got " + std::to_string(bytes) +
                              ". Give a buffer of the tensor's size.");
}

std::ptrdiff_t distance(const void* begin, const void* end) {
  return static_cast<const std::byte*>(end) - static_cast<const std::byte*>(begin);
}

}  // namespace

Executable compileGraph(const Graph& graph, ArrayRef<program::Program> programs, const OptionFlags& opt,
                        ProgressFunc progressCallBack, const DebugContext&) {
  constexpr int kStages = 1;
  if (progressCallBack) progressCallBack(0, kStages);
  ipu_model::Compiler compiler(graph.data());
  Executable result(compiler.compile({programs.data(), programs.size()}, compilerOptions(opt)));
  if (progressCallBack) progressCallBack(kStages, kStages);
  return result;
}

Engine::Engine(const Graph& graph, ArrayRef<program::Program> programs, const OptionFlags& opt,
               ProgressFunc progressCallBack, const DebugContext& debugContext)
    : Engine(compileGraph(graph, programs, opt, std::move(progressCallBack), debugContext), opt) {}

Engine::Engine(const Executable& executable, const OptionFlags& opt)
    : data_(std::make_unique<EngineData>(executable.plan(), threadsOf(opt))) {}

Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

void Engine::load(const Device& device) {
  const unsigned tiles = data_->plan().target.getNumTiles() * data_->plan().replicas;
  if (device.getTarget().getNumTiles() < tiles) {
    throw poplar_error("load: `device` must have the " + std::to_string(tiles) +
                       " tiles of the graph's replicas, got " + std::to_string(device.getTarget().getNumTiles()) +
                       ". Make the graph for this device.");
  }
  data_->load();
}

void Engine::loadAndRun(const Device& device, unsigned prog) {
  load(device);
  run(prog);
}

void Engine::run(unsigned prog, const std::string&) { data_->run(prog); }
void Engine::stop() { data_->requestStop(); }

void Engine::writeTensor(StringRef handle, const void* buf, const void* bufEnd) {
  const Plan& plan = data_->plan();
  data_->write(access(plan, plan.host_writes, handle, distance(buf, bufEnd), "writeTensor"), buf);
}

void Engine::readTensor(StringRef handle, void* buf, void* bufEnd) {
  const Plan& plan = data_->plan();
  data_->read(access(plan, plan.host_reads, handle, distance(buf, bufEnd), "readTensor"), buf);
}

void Engine::writeTensor(StringRef handle, const void* buf) {
  const Plan& plan = data_->plan();
  data_->write(access(plan, plan.host_writes, handle, "writeTensor"), buf);
}

void Engine::readTensor(StringRef handle, void* buf) {
  const Plan& plan = data_->plan();
  data_->read(access(plan, plan.host_reads, handle, "readTensor"), buf);
}

void Engine::connectStream(StringRef handle, void* begin, void* end) {
  auto* first = static_cast<std::byte*>(begin);
  data_->stream(handle) = {first, static_cast<std::byte*>(end), first, nullptr};
}

void Engine::connectStream(StringRef handle, void* p) {
  auto* first = static_cast<std::byte*>(p);
  data_->stream(handle) = {first, nullptr, first, nullptr};
}

void Engine::connectStreamToCallback(StringRef handle, StreamCallbackHandle callback) {
  data_->stream(handle) = {nullptr, nullptr, nullptr, callback.callback()};
}

void Engine::connectStreamToCallback(StringRef handle, unsigned, StreamCallbackHandle callback) {
  connectStreamToCallback(handle, std::move(callback));
}

void Engine::connectHostFunction(StringRef handle, unsigned, HostCallbackHandle callback) {
  data_->connectHostFunction(handle, callback.callback());
}

void Engine::copyFromRemoteBuffer(StringRef handle, void* w, unsigned repeatIndex, unsigned replicationIndex) {
  std::size_t row = 0;
  const std::vector<std::byte>& buffer = data_->remoteBuffer(handle, replicationIndex, &row);
  if ((repeatIndex + std::size_t{1}) * row <= buffer.size()) std::memcpy(w, buffer.data() + repeatIndex * row, row);
}

void Engine::copyToRemoteBuffer(void* w, StringRef handle, unsigned repeatIndex, unsigned replicationIndex) {
  std::size_t row = 0;
  std::vector<std::byte>& buffer = data_->remoteBuffer(handle, replicationIndex, &row);
  if ((repeatIndex + std::size_t{1}) * row <= buffer.size()) std::memcpy(buffer.data() + repeatIndex * row, w, row);
}

std::vector<std::string> Engine::listStreams() const {
  std::vector<std::string> handles;
  for (const DataStream& stream : data_->plan().graph->streams) handles.push_back(stream.handle());
  return handles;
}

void Engine::setPrintStream(std::ostream& stream) { data_->setPrintStream(stream); }
void Engine::enableExecutionProfiling() { data_->setCounting(true); }
void Engine::disableExecutionProfiling() { data_->setCounting(false); }
void Engine::resetExecutionProfile() { data_->resetCounters(); }

void Engine::printProfileSummary(std::ostream& stream, const OptionFlags& opt) const {
  const bool steps = opt.contains("showExecutionSteps") && opt.at("showExecutionSteps") == "true";
  ipu_model::printSummary(ipu_model::profileOf(*this), stream, steps);
}

Engine::TimerTimePoint Engine::getTimeStamp() { return {std::chrono::steady_clock::now()}; }

void Engine::reportTiming(const TimerTimePoint& from, const TimerTimePoint& to, std::ostream& stream) {
  stream << "host: " << std::chrono::duration<double>(to.time - from.time).count() << " s\n";
}

}  // namespace poplar
