// Runs the transfers between device and host.
#include <cstring>
#include <poplar/exceptions.hpp>

#include "costs/costs.hpp"
#include "engine/run/engine_data.hpp"

namespace ipu_model {

StreamEnd& EngineData::stream(poplar::StringRef handle) {
  const std::vector<poplar::DataStream>& known = plan_->graph->streams;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (known[i].handle() == handle) return streams_[i];
  }
  throw poplar::stream_connection_error("connectStream: `handle` must be a stream of the graph, got \"" + handle +
                                        "\". addHostToDeviceFIFO and addDeviceToHostFIFO make them.");
}

// Where the next copy's data lie: in the ring, or in a buffer for the callback.
std::byte* EngineData::streamPlace(StreamEnd& end, std::size_t bytes, std::vector<std::byte>& buffer) {
  if (end.callback != nullptr) {
    buffer.resize(bytes);
    return buffer.data();
  }
  std::byte* place = end.next;
  if (end.end == nullptr) return place;
  if (static_cast<std::size_t>(end.end - end.begin) < bytes) {
    throw poplar::stream_connection_error("connectStream: `end` must lie at least " + std::to_string(bytes) +
                                          " bytes after begin, got " + std::to_string(end.end - end.begin) +
                                          ". A copy takes that many.");
  }
  end.next += bytes;
  if (static_cast<std::size_t>(end.end - end.next) < bytes) end.next = end.begin;
  return place;
}

void EngineData::runStep(const StepStream& step) {
  StreamEnd& end = streams_[step.stream];
  const HostPlan& host = plan_->host[step.host];
  const std::string handle = plan_->graph->streams[step.stream].handle();
  if (!end.connected()) {
    throw poplar::stream_connection_error("run: `" + handle +
                                          "` must be connected, got a stream without a host's end. Call " +
                                          "Engine::connectStream or connectStreamToCallback.");
  }
  // A copy of several times the stream's elements takes them one after the other.
  const poplar::DataStream& stream = plan_->graph->streams[step.stream];
  const std::size_t piece = stream.numElements() * stream.elementType().size();
  const bool same = !step.to_host && stream.replicatedMode() == poplar::ReplicatedStreamMode::BROADCAST;
  std::vector<std::byte> all(host.bytes);
  if (same) pass(end, piece, false, all);
  for (Replica* replica : active_) {
    if (step.to_host) readOne(host, all.data(), *replica);
    if (!same) pass(end, piece, step.to_host, all);
    if (!step.to_host) writeOne(host, all.data(), *replica);
  }
  countRequests(step.host, step.joins ? 0 : 1);
  countExchange(host.rearrangement);
}

// The bytes of one replica, piece by piece.
void EngineData::pass(StreamEnd& end, std::size_t piece, bool to_host, std::span<std::byte> all) {
  std::vector<std::byte> buffer;
  for (std::size_t done = 0; done < all.size(); done += piece) {
    std::byte* place = streamPlace(end, piece, buffer);
    if (to_host) {
      std::memcpy(place, all.data() + done, piece);
      if (end.callback != nullptr) end.callback->fetch(place);
    } else {
      // Data that the callback has ready is not requested again.
      if (end.callback != nullptr && end.callback->prefetch(place) != poplar::StreamCallback::Result::Success) {
        end.callback->fetch(place);
      }
      std::memcpy(all.data() + done, place, piece);
    }
    if (end.callback != nullptr) end.callback->complete();
  }
}

void EngineData::countRequests(std::uint32_t host, std::uint64_t requests) {
  const Chip& chip = plan_->target.chip();
  const std::uint64_t sync = requests > 0 ? systemSyncCycles(chip, plan_->target.getNumIPUs()) : 0;
  countHost(host, hostCycles(chip, plan_->host[host].ipu_bytes, requests), sync);
}

void EngineData::countHost(std::uint32_t host, std::uint64_t cycles, std::uint64_t sync) {
  clock_ += cycles + sync;
  if (!counting_) return;
  counters_.host += cycles;
  counters_.sync += sync;
  countBusy(cycles + sync);
  ++counters_.streams[host].executions;
  counters_.streams[host].host_cycles += cycles;
  counters_.streams[host].sync_cycles += sync;
}

void EngineData::runStep(const StepRemote& step) {
  for (Replica* replica : active_) passRows(step, *replica);
  const Chip& chip = plan_->target.chip();
  countHost(step.host, remoteCycles(chip, plan_->host[step.host].ipu_bytes, step.rows),
            systemSyncCycles(chip, plan_->target.getNumIPUs()));
}

void EngineData::passRows(const StepRemote& step, Replica& replica) {
  const HostPlan& host = plan_->host[step.host];
  std::vector<std::uint32_t> offsets(step.rows, 0);
  if (step.offsets != kNothing) readOne(plan_->host[step.offsets], offsets.data(), replica);
  std::vector<std::byte> all(host.bytes);
  std::vector<std::byte>& buffer = remote_buffers_[replica.number * plan_->graph->remote_buffers.size() + step.buffer];
  const std::size_t row = step.rows > 0 ? host.bytes / step.rows : 0;
  if (step.to_host) readOne(host, all.data(), replica);
  for (std::size_t i = 0; i < step.rows; ++i) {
    if ((offsets[i] + std::size_t{1}) * row > buffer.size()) {
      throw poplar::runtime_error("Copy: `offset` must be a repeat of remote buffer " + host.name + ", got " +
                                  std::to_string(offsets[i]) + ". Add the buffer with more repeats.");
    }
    std::byte* there = buffer.data() + offsets[i] * row;
    std::byte* here = all.data() + i * row;
    if (step.to_host) {
      std::memcpy(there, here, row);
    } else {
      std::memcpy(here, there, row);
    }
  }
  if (!step.to_host) writeOne(host, all.data(), replica);
}

std::vector<std::byte>& EngineData::remoteBuffer(poplar::StringRef handle, unsigned replica, std::size_t* row_bytes) {
  const std::vector<poplar::RemoteBuffer>& known = plan_->graph->remote_buffers;
  for (std::size_t i = 0; i < known.size() && replica < replicas_.size(); ++i) {
    if (known[i].handle() != handle) continue;
    *row_bytes = known[i].numElements() * known[i].elementType().size();
    return remote_buffers_[replica * known.size() + i];
  }
  throw poplar::stream_connection_error("copyToRemoteBuffer: `handle` must be a remote buffer of the graph, got \"" +
                                        handle + "\". addRemoteBuffer makes them.");
}

void EngineData::connectHostFunction(poplar::StringRef handle, std::shared_ptr<poplar::HostCallback> callback) {
  const std::vector<HostFunctionType>& known = plan_->graph->host_functions;
  for (std::size_t i = 0; i < host_functions_.size(); ++i) {
    if (known[i].handle != handle) continue;
    host_functions_[i] = std::move(callback);
    return;
  }
  throw poplar::stream_connection_error("connectHostFunction: `handle` must be a host function of the graph, got \"" +
                                        handle + "\". addHostFunction makes them.");
}

void EngineData::runStep(const StepHostCall& step) {
  if (host_functions_[step.function] == nullptr) {
    throw poplar::stream_connection_error("run: `" + plan_->graph->host_functions[step.function].handle +
                                          "` must be connected, got a host function without one. Call " +
                                          "Engine::connectHostFunction.");
  }
  for (Replica* replica : active_) callHost(step, *replica);
  // All arguments are one request, all results another.
  for (const auto& hosts : {step.inputs, step.outputs}) {
    for (std::size_t i = 0; i < hosts.size(); ++i) countRequests(hosts[i], i == 0 ? 1 : 0);
  }
}

void EngineData::callHost(const StepHostCall& step, Replica& replica) {
  std::vector<std::vector<std::byte>> buffers;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (const std::uint32_t host : step.inputs) {
    readOne(plan_->host[host], buffers.emplace_back(plan_->host[host].bytes).data(), replica);
    inputs.push_back(buffers.back().data());
  }
  for (const std::uint32_t host : step.outputs) {
    outputs.push_back(buffers.emplace_back(plan_->host[host].bytes).data());
  }
  host_functions_[step.function]->callback(inputs, outputs);
  for (std::size_t i = 0; i < step.outputs.size(); ++i) {
    writeOne(plan_->host[step.outputs[i]], outputs[i], replica);
  }
}

}  // namespace ipu_model
