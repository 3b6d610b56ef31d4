// Runs plans: control flow, compute sets and copies.
#include <algorithm>
#include <cstring>
#include <iostream>
#include <poplar/exceptions.hpp>

#include "costs/costs.hpp"
#include "engine/engine_data.hpp"

namespace ipu_model {
namespace {

constexpr std::size_t kMemoryAlign = 64;
constexpr std::size_t kTasksPerThread = 8;         // so that threads end at about the same time
constexpr std::size_t kVerticesWorthAThread = 64;  // fewer are run before another thread has woken up
constexpr std::size_t kMovesWorthAThread = 4096;

}  // namespace

EngineData::EngineData(std::shared_ptr<const Plan> plan, std::size_t threads)
    : plan_(std::move(plan)),
      storage_(plan_->variable_bytes + plan_->scratch_bytes + kMemoryAlign),
      threads_(threads),
      thread_counters_(threads),
      streams_(plan_->graph->streams.size()),
      host_functions_(plan_->graph->host_functions.size()),
      print_(&std::cerr) {
  void* begin = storage_.data();
  std::size_t space = storage_.size();
  memory_ = static_cast<std::byte*>(std::align(kMemoryAlign, space - kMemoryAlign, begin, space));
  for (const ComputeSetPlan& plan_of_set : plan_->compute_sets) {
    compute_sets_.emplace_back(plan_of_set, plan_->target.chip(), memory_);
  }
  for (const poplar::RemoteBuffer& buffer : plan_->graph->remote_buffers) {
    remote_buffers_.emplace_back(buffer.numElements() * buffer.elementType().size() * buffer.getRepeats());
  }
  resetCounters();
}

void EngineData::resetCounters() {
  counters_ = {};
  counters_.compute_sets.resize(plan_->compute_sets.size());
  for (std::size_t i = 0; i < plan_->compute_sets.size(); ++i) {
    counters_.compute_sets[i].codelets.resize(plan_->compute_sets[i].codelets.size());
  }
  counters_.copies.resize(plan_->copies.size());
  counters_.streams.resize(plan_->host.size());
  counters_.tile_cycles.resize(plan_->target.getNumTiles());
}

void EngineData::load() {
  std::fill(storage_.begin(), storage_.end(), std::byte{0});
  for (const InitialPlan& initial : plan_->initial) perform(initial.moves, initial.bytes.data(), memory_);
  loaded_ = true;
}

void EngineData::run(unsigned program) {
  if (program >= plan_->programs.size()) {
    throw poplar::runtime_error("run: `prog` must be below " + std::to_string(plan_->programs.size()) + ", got " +
                                std::to_string(program) + ". The engine was made with that many programs.");
  }
  if (!loaded_) {
    throw poplar::runtime_error("run: `engine` must be loaded on a device, got one that is not. Call load() first.");
  }
  stop_ = false;
  runBlock(plan_->programs[program]);
}

void EngineData::runBlock(BlockId block) {
  for (const Step& step : plan_->blocks[block]) {
    if (stop_) return;
    std::visit([this](const auto& what) { runStep(what); }, step);
  }
}

void EngineData::performAll(std::span<const Move> moves, const std::byte* from, std::byte* to) {
  const std::size_t tasks = (moves.size() + kMovesWorthAThread - 1) / kMovesWorthAThread;
  threads_.run(tasks, [&](std::size_t task, std::size_t) {
    const std::size_t first = task * kMovesWorthAThread;
    perform(moves.subspan(first, std::min(kMovesWorthAThread, moves.size() - first)), from, to);
  });
}

void EngineData::runStep(const StepCompute& step) {
  const ComputeSetPlan& plan = plan_->compute_sets[step.compute_set];
  performAll(plan.gathers, memory_, memory_);
  countExchange(plan.before);
  runTiles(step.compute_set);
  performAll(plan.scatters, memory_, memory_);
  countExchange(plan.after);
}

void EngineData::runTiles(std::size_t compute_set) {
  const ComputeSetPlan& plan = plan_->compute_sets[compute_set];
  const LiveComputeSet& live = compute_sets_[compute_set];
  for (ThreadCounters& counters : thread_counters_) {
    counters.codelets.assign(plan.codelets.size(), {});
    counters.slowest = counters.tile_cycles = 0;
  }
  const bool alone = plan.vertices.size() < kVerticesWorthAThread;
  const std::size_t tasks = alone ? 1 : std::min(live.tiles(), threads_.threads() * kTasksPerThread);
  threads_.run(tasks, [&](std::size_t task, std::size_t thread) {
    for (std::size_t tile = live.tiles() * task / tasks; tile < live.tiles() * (task + 1) / tasks; ++tile) {
      const std::uint64_t cycles = live.runTile(tile, thread_counters_[thread]);
      if (counting_) counters_.tile_cycles[plan.tiles[tile].tile] += cycles;
    }
  });
  std::uint64_t slowest = 0;
  for (const ThreadCounters& counters : thread_counters_) slowest = std::max(slowest, counters.slowest);
  clock_ += slowest;
  if (!counting_) return;
  ComputeSetCounters& counters = counters_.compute_sets[compute_set];
  ++counters.executions;
  counters.cycles += slowest;
  counters.max = std::max(counters.max, slowest);
  for (const ThreadCounters& part : thread_counters_) {
    counters.tile_cycles += part.tile_cycles;
    for (std::size_t i = 0; i < part.codelets.size(); ++i) counters.codelets[i].add(part.codelets[i]);
  }
  counters_.compute += slowest;
}

void EngineData::countExchange(const ExchangeCost& cost) {
  clock_ += cost.cycles + cost.sync_cycles;
  if (!counting_) return;
  counters_.exchange += cost.cycles;
  counters_.sync += cost.sync_cycles;
}

void EngineData::runStep(const StepCopy& step) {
  const CopyPlan& plan = plan_->copies[step.copy];
  performAll(plan.moves, memory_, memory_);
  performAll(plan.then, memory_, memory_);
  countExchange(plan.cost);
  if (counting_) ++counters_.copies[step.copy].executions;
}

void EngineData::runStep(const StepRepeat& step) {
  for (std::uint32_t i = 0; i < step.count && !stop_; ++i) runBlock(step.body);
}

void EngineData::runStep(const StepWhile& step) {
  for (runBlock(step.condition); !stop_ && (scalar(step.predicate) != 0) == step.until; runBlock(step.condition)) {
    runBlock(step.body);
  }
}

void EngineData::runStep(const StepSwitch& step) {
  const std::int32_t control = scalar(step.control);
  const auto found =
      std::find_if(step.cases.begin(), step.cases.end(), [control](const auto& one) { return one.first == control; });
  runBlock(found == step.cases.end() ? step.otherwise : found->second);
}

void EngineData::runStep(const StepCall& step) { runBlock(plan_->functions[step.function]); }

void EngineData::runStep(const StepSync& step) { countExchange({0, step.cycles, 0, 0, 0}); }

void EngineData::runStep(const StepPrint& step) {
  std::vector<std::byte> values(plan_->host[step.host].bytes);
  read(plan_->host[step.host], values.data());
  printTensor(step, values, *print_);
}

void EngineData::runStep(const StepError& step) {
  if (step.predicate != kNothing && scalar(step.predicate) == 0) return;
  if (step.printed) runStep(*step.printed);
  throw poplar::application_runtime_error(step.message);
}

void EngineData::runStep(const StepStamp& step) {
  std::uint64_t value = clock_;
  if (step.difference) {
    std::uint64_t start = 0;
    read(plan_->host[step.host], &start);
    value -= start;
  }
  write(plan_->host[step.host], &value);
}

// A predicate: one element of any type of up to four bytes.
std::int32_t EngineData::scalar(std::uint32_t host) const {
  std::int32_t value = 0;
  std::byte bytes[sizeof(std::int64_t)] = {};
  read(plan_->host[host], bytes);
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

void EngineData::write(const HostPlan& host, const void* from) {
  perform(host.moves, static_cast<const std::byte*>(from), memory_);
}

void EngineData::read(const HostPlan& host, void* to) const {
  auto* bytes = static_cast<std::byte*>(to);
  for (Move move : host.moves) {
    std::swap(move.from, move.to);
    std::swap(move.from_step, move.to_step);
    perform(move, memory_, bytes);
  }
}

}  // namespace ipu_model
