// What differs between replicas: their memory, their path through branches and loops, and copies from one to another.
#include <algorithm>
#include <cstring>
#include <map>
#include <poplar/exceptions.hpp>
#include <set>

#include "engine/compiler/compiler.hpp"
#include "engine/run/engine_data.hpp"

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

// Replica r has the tiles after those of replica r - 1, so such a copy is an exchange between IPUs.
void Compiler::appendCrossReplica(const nodes::CrossReplicaCopy& node, const std::string& name, Block& steps) {
  checkReplicas(node, graph_->replicas);
  const CopyRuns copy{viewOf(node.from).runs(), viewOf(node.to).runs(), node.from.elementType().size()};
  const std::vector<Span> from = spansOf(copy.from), to = spansOf(copy.to);
  const bool follows = !steps.empty() && std::holds_alternative<StepCrossReplica>(steps.back());
  const bool apart = !crossing_.written.meets(from) && !crossing_.written.meets(to) && !crossing_.read.meets(to);
  if (!follows || !apart) {
    crossing_ = {};
    steps.push_back(StepCrossReplica{static_cast<std::uint32_t>(plan_->copies.size()), {}});
    plan_->copies.emplace_back();
    plan_->copies.back().name = name;
  }
  auto& step = std::get<StepCrossReplica>(steps.back());
  step.parts.push_back(
      {hostPlan(name, node.from), hostPlan(name, node.to), {node.replicas.begin(), node.replicas.end()}});
  crossing_.read.add(from);
  crossing_.written.add(to);
  const unsigned tiles = graph_->target.getNumTiles();
  for (const Transfer& transfer : transfersOf(*graph_, layout_, copy)) {
    for (const auto& [source, destination] : node.replicas) {
      crossing_.transfers.push_back({transfer.source + source * tiles, transfer.destination + destination * tiles,
                                     transfer.from, transfer.to, transfer.bytes});
    }
  }
  priceCrossing(step.copy);
}

// One exchange of everything that crosses, replacing what was counted before.
void Compiler::priceCrossing(std::uint32_t copy) {
  const poplar::Target& own = graph_->target;
  const unsigned tiles = own.getNumTiles();
  const poplar::Target all = own.createVirtualTarget(own.getNumIPUs() * graph_->replicas, own.getTilesPerIPU());
  ExchangePhase phase(all);
  for (const Transfer& transfer : crossing_.transfers) phase.add(transfer);
  std::vector<TileBytes> memory(all.getNumTiles());
  plan_->copies[copy].cost = phase.finish(memory, false);
  crossing_.code.resize(tiles, 0);
  const std::vector<TileBytes> before = plan_->memory;
  for (unsigned tile = 0; tile < tiles; ++tile) {
    std::uint64_t code = 0;
    for (unsigned replica = 0; replica < graph_->replicas; ++replica) {
      code = std::max(code, memory[tile + replica * tiles].exchange_code);
    }
    plan_->memory[tile].exchange_code += code - crossing_.code[tile];
    crossing_.code[tile] = code;
  }
  largest_phases_.note(plan_->copies[copy].name, before, plan_->memory);
}

void EngineData::runStep(const StepCrossReplica& step) {
  if (active_.size() != replicas_.size()) {
    throw poplar::runtime_error("CrossReplicaCopy: `replicas` must all reach it, got " +
                                std::to_string(active_.size()) + " of " + std::to_string(replicas_.size()) +
                                ". Keep it out of branches and loops that replicas take differently.");
  }
  std::vector<std::vector<std::byte>> sent;
  for (const StepCrossReplica::Part& part : step.parts) {
    const HostPlan& from = plan_->host[part.from];
    for (const auto& [source, destination] : part.replicas) {
      readOne(from, sent.emplace_back(from.bytes).data(), replicas_[source]);
    }
  }
  std::size_t next = 0;
  for (const StepCrossReplica::Part& part : step.parts) {
    for (const auto& [source, destination] : part.replicas) {
      writeOne(plan_->host[part.to], sent[next++].data(), replicas_[destination]);
    }
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
