// Runs plans: control flow, compute sets and copies.
#include <algorithm>
#include <cstring>
#include <iostream>
#include <poplar/exceptions.hpp>

#include "costs/costs.hpp"
#include "engine/run/engine_data.hpp"
#include "floating_point.hpp"

namespace ipu_model {
namespace {

constexpr std::size_t kMemoryAlign = 64;
constexpr std::size_t kTasksPerThread = 8;         // so that threads end at about the same time
constexpr std::size_t kVerticesWorthAThread = 64;  // running fewer is faster than waking another thread
constexpr std::size_t kMovesWorthAThread = 4096;

}  // namespace

Replica::Replica(const Plan& plan, std::uint32_t its_number)
    : number(its_number), storage(plan.variable_bytes + plan.scratch_bytes + kMemoryAlign) {
  void* begin = storage.data();
  std::size_t space = storage.size();
  memory = static_cast<std::byte*>(std::align(kMemoryAlign, space - kMemoryAlign, begin, space));
  for (const ComputeSetPlan& plan_of_set : plan.compute_sets) {
    compute_sets.emplace_back(plan_of_set, plan.target.chip(), memory);
  }
}

EngineData::EngineData(std::shared_ptr<const Plan> plan, std::size_t threads)
    : plan_(std::move(plan)),
      threads_(ThreadPool::shared(threads)),
      thread_counters_(threads),
      streams_(plan_->graph->streams.size()),
      host_functions_(plan_->graph->host_functions.size()),
      print_(&std::cerr) {
  for (std::uint32_t number = 0; number < plan_->replicas; ++number) {
    replicas_.emplace_back(*plan_, number);
    for (const poplar::RemoteBuffer& buffer : plan_->graph->remote_buffers) {
      remote_buffers_.emplace_back(buffer.numElements() * buffer.elementType().size() * buffer.getRepeats());
    }
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
  counters_.tile_cycles.resize(std::size_t{plan_->replicas} * plan_->target.getNumTiles());
  counters_.busy.resize(plan_->replicas);
}

void EngineData::load() {
  for (Replica& replica : replicas_) {
    std::fill(replica.storage.begin(), replica.storage.end(), std::byte{0});
    for (const InitialPlan& initial : plan_->initial) perform(initial.moves, initial.bytes.data(), replica.memory);
    for (const std::size_t address : plan_->replica_numbers) {
      std::memcpy(replica.memory + address, &replica.number, sizeof(replica.number));
    }
  }
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
  const snnjax::FloatingPoint as_on_tiles(FE_DFL_ENV);
  stop_ = false;
  active_.clear();
  for (Replica& replica : replicas_) active_.push_back(&replica);
  runBlock(plan_->programs[program]);
}

void EngineData::runBlock(BlockId block) {
  for (const Step& step : plan_->blocks[block]) {
    if (stop_) return;
    std::visit([this](const auto& what) { runStep(what); }, step);
  }
}

void EngineData::performAll(std::span<const Move> moves) {
  const std::size_t tasks = (moves.size() + kMovesWorthAThread - 1) / kMovesWorthAThread;
  for (const Replica* replica : active_) {
    threads_->run(tasks, [&](std::size_t task, std::size_t) {
      const std::size_t first = task * kMovesWorthAThread;
      perform(moves.subspan(first, std::min(kMovesWorthAThread, moves.size() - first)), replica->memory,
              replica->memory);
    });
  }
}

void EngineData::runStep(const StepCompute& step) {
  const ComputeSetPlan& plan = plan_->compute_sets[step.compute_set];
  performAll(plan.gathers);
  countExchange(plan.before);
  runTiles(step.compute_set);
  performAll(plan.scatters);
  countExchange(plan.after);
}

void EngineData::runTiles(std::size_t compute_set) {
  const ComputeSetPlan& plan = plan_->compute_sets[compute_set];
  for (ThreadCounters& counters : thread_counters_) {
    counters.codelets.assign(plan.codelets.size(), {});
    counters.slowest.assign(active_.size(), 0);
    counters.tile_cycles = 0;
  }
  const std::size_t tiles = plan.tiles.size(), total = tiles * active_.size();
  const bool alone = plan.vertices.size() * active_.size() < kVerticesWorthAThread;
  const std::size_t tasks = alone ? 1 : std::min(total, threads_->threads() * kTasksPerThread);
  threads_->run(tasks, [&](std::size_t task, std::size_t thread) {
    for (std::size_t i = total * task / tasks; i < total * (task + 1) / tasks; ++i) {
      const Replica& replica = *active_[i / tiles];
      ThreadCounters& own = thread_counters_[thread];
      const std::uint64_t cycles = replica.compute_sets[compute_set].runTile(i % tiles, own);
      own.slowest[i / tiles] = std::max(own.slowest[i / tiles], cycles);
      const std::size_t tile = std::size_t{replica.number} * plan_->target.getNumTiles() + plan.tiles[i % tiles].tile;
      if (counting_) counters_.tile_cycles[tile] += cycles;
    }
  });
  const std::uint64_t slowest = slowestOfActive();
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

// Of the compute set that has run: each replica is busy until its own slowest tile ends, then waits for the others.
std::uint64_t EngineData::slowestOfActive() {
  std::uint64_t slowest = 0;
  for (std::size_t i = 0; i < active_.size(); ++i) {
    std::uint64_t own = 0;
    for (const ThreadCounters& counters : thread_counters_) own = std::max(own, counters.slowest[i]);
    if (counting_) counters_.busy[active_[i]->number] += own;
    slowest = std::max(slowest, own);
  }
  return slowest;
}

void EngineData::countBusy(std::uint64_t cycles) {
  for (const Replica* replica : active_) counters_.busy[replica->number] += cycles;
}

void EngineData::countExchange(const ExchangeCost& cost) {
  clock_ += cost.cycles + cost.sync_cycles;
  if (!counting_) return;
  counters_.exchange += cost.cycles;
  counters_.sync += cost.sync_cycles;
  countBusy(cost.cycles + cost.sync_cycles);
}

void EngineData::runStep(const StepCopy& step) {
  const CopyPlan& plan = plan_->copies[step.copy];
  performAll(plan.moves);
  performAll(plan.then);
  countExchange(plan.cost);
  if (counting_) ++counters_.copies[step.copy].executions;
}

void EngineData::runStep(const StepRepeat& step) {
  for (std::uint32_t i = 0; i < step.count && !stop_; ++i) runBlock(step.body);
}

void EngineData::runStep(const StepCall& step) { runBlock(plan_->functions[step.function]); }

void EngineData::runStep(const StepSync& step) { countExchange({0, step.cycles, 0, 0, 0}); }

void EngineData::runStep(const StepPrint& step) {
  std::vector<std::byte> values(plan_->host[step.host].bytes);
  for (const Replica* replica : active_) {
    readOne(plan_->host[step.host], values.data(), *replica);
    printTensor(step, values, *print_);
  }
}

void EngineData::runStep(const StepError& step) {
  const bool none = step.predicate != kNothing && std::ranges::all_of(active_, [&](const Replica* replica) {
                      return scalar(*replica, step.predicate) == 0;
                    });
  if (none) return;
  if (step.printed) runStep(*step.printed);
  throw poplar::application_runtime_error(step.message);
}

void EngineData::runStep(const StepStamp& step) {
  const HostPlan& host = plan_->host[step.host];
  for (Replica* replica : active_) {
    std::uint64_t start = 0;
    if (step.difference) readOne(host, &start, *replica);
    const std::uint64_t value = clock_ - start;
    writeOne(host, &value, *replica);
  }
}

}  // namespace ipu_model
