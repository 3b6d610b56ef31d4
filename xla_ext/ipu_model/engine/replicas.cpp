// What tells replicas apart: their memory, where branches and loops take them, and copies from one to another.
#include <algorithm>
#include <cstring>
#include <map>
#include <poplar/exceptions.hpp>
#include <set>

#include "engine/compiler.hpp"
#include "engine/engine_data.hpp"

namespace ipu_model {
namespace {

void checkReplicas(const nodes::CrossReplicaCopy& node, unsigned replicas) {
  std::set<unsigned> receivers;
  for (const auto& [from, to] : node.replicas) {
    if (from < replicas && to < replicas && receivers.insert(to).second) continue;
    throw poplar::control_program_error("CrossReplicaCopy: `replicaMap` must name each of the " +
                                        std::to_string(replicas) + " replicas at most once on either side, got " +
                                        std::to_string(from) + " to " + std::to_string(to) +
                                        ". Graph::getReplicationFactor says how many there are.");
  }
}

}  // namespace

// Replica r has the tiles behind those of replica r - 1: seen so, such a copy is an exchange between IPUs.
Step Compiler::step(const nodes::CrossReplicaCopy& node, const std::string& name) {
  checkReplicas(node, graph_->replicas);
  const CopyRuns copy{viewOf(node.from).runs(), viewOf(node.to).runs(), node.from.elementType().size()};
  const poplar::Target& own = graph_->target;
  const unsigned tiles = own.getNumTiles();
  const poplar::Target all = own.createVirtualTarget(own.getNumIPUs() * graph_->replicas, own.getTilesPerIPU());
  ExchangePhase phase(all);
  for (Transfer transfer : transfersOf(*graph_, layout_, copy)) {
    for (const auto& [from, to] : node.replicas) {
      phase.add({transfer.source + from * tiles, transfer.destination + to * tiles, transfer.from, transfer.to,
                 transfer.bytes});
    }
  }
  std::vector<TileBytes> memory(all.getNumTiles());
  CopyPlan plan;
  plan.name = name;
  plan.cost = phase.finish(memory, false);
  for (unsigned tile = 0; tile < tiles; ++tile) {
    std::uint64_t code = 0;
    for (unsigned replica = 0; replica < graph_->replicas; ++replica) {
      code = std::max(code, memory[tile + replica * tiles].exchange_code);
    }
    plan_->memory[tile].exchange_code += code;
  }
  plan_->copies.push_back(std::move(plan));
  return StepCrossReplica{static_cast<std::uint32_t>(plan_->copies.size() - 1),
                          hostPlan(name, node.from),
                          hostPlan(name, node.to),
                          {node.replicas.begin(), node.replicas.end()}};
}

void EngineData::runStep(const StepCrossReplica& step) {
  if (active_.size() != replicas_.size()) {
    throw poplar::runtime_error("CrossReplicaCopy: `replicas` must all reach it, got " +
                                std::to_string(active_.size()) + " of " + std::to_string(replicas_.size()) +
                                ". Keep it out of branches and loops that replicas take differently.");
  }
  const HostPlan& from = plan_->host[step.from];
  std::vector<std::vector<std::byte>> sent;
  for (const auto& [source, destination] : step.replicas) {
    readOne(from, sent.emplace_back(from.bytes).data(), replicas_[source]);
  }
  for (std::size_t i = 0; i < sent.size(); ++i) {
    writeOne(plan_->host[step.to], sent[i].data(), replicas_[step.replicas[i].second]);
  }
  countExchange(plan_->copies[step.copy].cost);
  if (counting_) ++counters_.copies[step.copy].executions;
}

// Each replica leaves the loop when its own predicate says so; the others go on.
void EngineData::runStep(const StepWhile& step) {
  const std::vector<Replica*> all = active_;
  for (runBlock(step.condition); !stop_; runBlock(step.condition)) {
    std::erase_if(active_,
                  [&](const Replica* replica) { return (scalar(*replica, step.predicate) != 0) != step.until; });
    if (active_.empty()) break;
    runBlock(step.body);
  }
  active_ = all;
}

// Replicas that take different branches run them one after the other.
void EngineData::runStep(const StepSwitch& step) {
  std::map<BlockId, std::vector<Replica*>> branches;
  for (Replica* replica : active_) {
    const std::int32_t control = scalar(*replica, step.control);
    const auto found =
        std::find_if(step.cases.begin(), step.cases.end(), [control](const auto& one) { return one.first == control; });
    branches[found == step.cases.end() ? step.otherwise : found->second].push_back(replica);
  }
  const std::vector<Replica*> all = active_;
  for (const auto& [block, replicas] : branches) {
    active_ = replicas;
    runBlock(block);
  }
  active_ = all;
}

// A predicate: one element of any type of up to four bytes.
std::int32_t EngineData::scalar(const Replica& replica, std::uint32_t host) const {
  std::int32_t value = 0;
  std::byte bytes[sizeof(std::int64_t)] = {};
  readOne(plan_->host[host], bytes, replica);
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

void EngineData::write(const HostPlan& host, const void* from) {
  const auto* bytes = static_cast<const std::byte*>(from);
  for (Replica& replica : replicas_) writeOne(host, bytes + replica.number * host.bytes, replica);
}

void EngineData::read(const HostPlan& host, void* to) const {
  auto* bytes = static_cast<std::byte*>(to);
  for (const Replica& replica : replicas_) readOne(host, bytes + replica.number * host.bytes, replica);
}

void EngineData::writeOne(const HostPlan& host, const void* from, Replica& replica) const {
  perform(host.moves, static_cast<const std::byte*>(from), replica.memory);
}

void EngineData::readOne(const HostPlan& host, void* to, const Replica& replica) const {
  auto* bytes = static_cast<std::byte*>(to);
  for (Move move : host.moves) {
    std::swap(move.from, move.to);
    std::swap(move.from_step, move.to_step);
    perform(move, replica.memory, bytes);
  }
}

}  // namespace ipu_model
