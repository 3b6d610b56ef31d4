#include "engine/compiler/compiler.hpp"

#include <algorithm>
#include <poplar/exceptions.hpp>

#include "costs/costs.hpp"
#include "engine/compiler/compute_set.hpp"

namespace ipu_model {
namespace {

constexpr BlockId kInProgress = kNothing;

std::vector<Run> runsOf(const poplar::Tensor& tensor) { return viewOf(tensor).runs(); }

}  // namespace

Compiler::Compiler(std::shared_ptr<GraphData> graph)
    : graph_(std::move(graph)), layout_(*graph_), plan_(std::make_shared<Plan>()), copies_(*graph_, layout_) {
  plan_->graph = graph_;
  plan_->target = graph_->target;
  plan_->replicas = graph_->replicas;
  plan_->variable_bytes = layout_.bytes();
  plan_->memory.resize(graph_->target.getNumTiles());
  vertices_.resize(graph_->compute_sets.size());
  for (std::uint32_t id = 0; id < graph_->vertices.size(); ++id) {
    vertices_[graph_->vertices[id].compute_set].push_back(id);
  }
}

std::shared_ptr<const Plan> Compiler::compile(std::span<const poplar::program::Program> programs,
                                              const Options& options) {
  for (const poplar::program::Program& function : graph_->functions) {
    plan_->functions.push_back(block(function.node()));
  }
  for (const poplar::program::Program& program : programs) plan_->programs.push_back(block(program.node()));
  plan_->sizes = {graph_->vertices.size(), 0, graph_->variables.size(), graph_->compute_sets.size()};
  for (const Vertex& vertex : graph_->vertices) plan_->sizes.edges += vertex.edges.size();
  addInitialValues();
  addHostAccess();
  addMemory(*plan_, layout_, options.worker_stack);
  if (options.ignore_estimates) {
    for (ComputeSetPlan& compute_set : plan_->compute_sets) {
      for (VertexPlan& vertex : compute_set.vertices) vertex.estimate.reset();
    }
  }
  if (options.fail_out_of_memory && !graph_->onHost()) checkMemory(*plan_, layout_, largest_phases_);
  return plan_;
}

// A node that occurs several times in a program is planned once.
BlockId Compiler::block(const Node& node) {
  const auto [known, is_new] = blocks_.emplace(node.get(), kInProgress);
  if (!is_new) return known->second;
  Block steps;
  append(node, steps);
  closeCopies();
  plan_->blocks.push_back(std::move(steps));
  const auto id = static_cast<BlockId>(plan_->blocks.size() - 1);
  blocks_[node.get()] = id;
  return id;
}

void Compiler::append(const Node& node, Block& steps) {
  if (const auto* sequence = std::get_if<nodes::Sequence>(&node->what)) {
    for (const Node& program : sequence->programs) append(program, steps);
    return;
  }
  if (const auto* copy = std::get_if<nodes::Copy>(&node->what)) return appendCopy(*copy, node->name, steps);
  closeCopies();
  if (const auto* copy = std::get_if<nodes::CrossReplicaCopy>(&node->what)) {
    return appendCrossReplica(*copy, node->name, steps);
  }
  std::visit(
      [&](const auto& what) {
        if constexpr (requires { step(what, node->name); }) {
          Step next = step(what, node->name);
          joinRequests(steps, next);
          steps.push_back(std::move(next));
        }
      },
      node->what);
}

Step Compiler::step(const nodes::Execute& node, const std::string&) {
  return StepCompute{computeSet(node.compute_set)};
}

std::uint32_t Compiler::computeSet(unsigned id) {
  const auto known = compute_sets_.find(id);
  if (known != compute_sets_.end()) return known->second;
  if (id >= vertices_.size()) {
    throw poplar::control_program_error("Execute: `cs` must be of the engine's graph, got number " +
                                        std::to_string(id) + ". addComputeSet makes one.");
  }
  const std::vector<TileBytes> before = plan_->memory;
  ComputeSetPlanner planner(*graph_, layout_, id, vertices_[id], plan_->memory);
  plan_->compute_sets.push_back(planner.plan());
  largest_phases_.note(plan_->compute_sets.back().name, before, plan_->memory);
  plan_->scratch_bytes = std::max(plan_->scratch_bytes, planner.scratchBytes());
  const auto index = static_cast<std::uint32_t>(plan_->compute_sets.size() - 1);
  compute_sets_[id] = index;
  return index;
}

void Compiler::appendCopy(const nodes::Copy& node, const std::string& name, Block& steps) {
  const CopyRuns copy{runsOf(node.from), runsOf(node.to), node.from.elementType().size()};
  if (!copies_.empty() && !copies_.takes(copy)) closeCopies();
  if (copies_.empty()) {
    steps.push_back(StepCopy{static_cast<std::uint32_t>(plan_->copies.size())});
    plan_->copies.emplace_back();
  }
  copies_.add(copy, name);
}

void Compiler::closeCopies() {
  if (copies_.empty()) return;
  plan_->scratch_bytes = std::max(plan_->scratch_bytes, copies_.scratchBytes());
  const std::vector<TileBytes> before = plan_->memory;
  plan_->copies.back() = copies_.finish(plan_->memory);
  largest_phases_.note(plan_->copies.back().name, before, plan_->memory);
}

std::uint32_t Compiler::hostPlan(const std::string& name, const poplar::Tensor& tensor) {
  return hostPlan(name, runsOf(tensor), tensor.elementType().size());
}

std::uint32_t Compiler::hostPlan(const std::string& name, std::span<const Run> runs, std::size_t element) {
  HostPlan host;
  host.name = name;
  host.moves = movesFromRow(0, runs, {layout_.addresses(), element});
  std::vector<Span> spans;
  appendSpans(runs, spans);
  std::vector<std::size_t> by_ipu(graph_->target.getNumIPUs(), 0);
  for (const Span& span : spans) {
    host.bytes += (span.end - span.begin) * element;
    layout_.forEach(span, "Copy", [&](std::size_t begin, std::size_t end, std::uint32_t tile, std::size_t) {
      by_ipu[tile / graph_->target.getTilesPerIPU()] += (end - begin) * element;
    });
  }
  host.ipu_bytes = *std::max_element(by_ipu.begin(), by_ipu.end());
  plan_->host.push_back(std::move(host));
  return static_cast<std::uint32_t>(plan_->host.size() - 1);
}

// Consecutive stream copies, all to the host or all from it, are one request.
void Compiler::joinRequests(const Block& before, Step& next) {
  const auto* const last = before.empty() ? nullptr : std::get_if<StepStream>(&before.back());
  auto* const stream = std::get_if<StepStream>(&next);
  if (last != nullptr && stream != nullptr) stream->joins = last->to_host == stream->to_host;
}

Step Compiler::step(const nodes::StreamCopy& node, const std::string&) {
  const std::uint32_t host = hostPlan(node.stream.handle(), node.tensor);
  if (!node.host_rearranges) {
    const std::vector<TileBytes> before = plan_->memory;
    plan_->host[host].rearrangement =
        planRearrangement(*graph_, layout_, runsOf(node.tensor), node.to_host, plan_->memory);
    largest_phases_.note(plan_->host[host].name, before, plan_->memory);
  }
  return StepStream{node.stream.id(), host, node.to_host, false};
}

Step Compiler::step(const nodes::RemoteCopy& node, const std::string& name) {
  const std::size_t rows = node.offset.valid() ? node.offset.numElements() : 1;
  if (node.tensor.numElements() != rows * node.buffer.numElements() ||
      node.tensor.elementType().size() != node.buffer.elementType().size()) {
    throw poplar::control_program_error("Copy: `buffer` must have rows that fit " + node.tensor.getDebugStr() +
                                        ", got \"" + node.buffer.handle().cloneAsString() + "\" of " +
                                        std::to_string(node.buffer.numElements()) +
                                        " elements. Each offset takes one row of the tensor.");
  }
  const std::uint32_t offsets = node.offset.valid() ? hostPlan(name, node.offset) : kNothing;
  return StepRemote{node.buffer.id(), hostPlan(node.buffer.handle(), node.tensor), offsets, rows, node.to_host};
}

Step Compiler::step(const nodes::Repeat& node, const std::string&) { return StepRepeat{node.count, block(node.body)}; }

Step Compiler::step(const nodes::RepeatWhile& node, const std::string& name) {
  return StepWhile{block(node.condition), hostPlan(name, node.predicate), block(node.body), node.until};
}

Step Compiler::step(const nodes::Switch& node, const std::string& name) {
  StepSwitch result{hostPlan(name, node.control), {}, block(node.otherwise)};
  for (const auto& [value, program] : node.cases) result.cases.emplace_back(value, block(program));
  return result;
}

Step Compiler::step(const nodes::Call& node, const std::string&) {
  if (node.function >= graph_->functions.size()) {
    throw poplar::control_program_error("Call: `function` must be of the engine's graph, got number " +
                                        std::to_string(node.function) + ". addFunction makes one.");
  }
  return StepCall{node.function};
}

Step Compiler::step(const nodes::HostCall& node, const std::string& name) {
  StepHostCall result{node.function, {}, {}};
  for (const poplar::Tensor& tensor : node.inputs) result.inputs.push_back(hostPlan(name, tensor));
  for (const poplar::Tensor& tensor : node.outputs) result.outputs.push_back(hostPlan(name, tensor));
  return result;
}

Step Compiler::step(const nodes::Sync& node, const std::string&) {
  const Chip& chip = graph_->target.chip();
  const bool internal = node.type == poplar::SyncType::INTERNAL;
  return StepSync{internal ? ipuSyncCycles(chip) : systemSyncCycles(chip, graph_->target.getNumIPUs())};
}

Step Compiler::step(const nodes::Print& node, const std::string& name) {
  return StepPrint{node.title, hostPlan(name, node.tensor), node.tensor.elementType(), node.tensor.shape(),
                   node.format};
}

Step Compiler::step(const nodes::Error& node, const std::string& name) {
  StepError result{node.message, kNothing, {}};
  if (node.predicate.valid()) result.predicate = hostPlan(name, node.predicate);
  if (node.printed.valid()) {
    result.printed =
        StepPrint{node.message, hostPlan(name, node.printed), node.printed.elementType(), node.printed.shape(), {}};
  }
  return result;
}

Step Compiler::step(const nodes::CycleStamp& node, const std::string& name) {
  return StepStamp{hostPlan(name, node.tensor), node.difference};
}

void Compiler::addInitialValues() {
  for (const InitialValues& values : graph_->initial_values) {
    if (values.runs.empty()) continue;
    const std::size_t element = graph_->variables[values.runs[0].variable].type.size();
    plan_->initial.push_back({movesFromRow(0, values.runs, {layout_.addresses(), element}), values.bytes});
  }
  for (const unsigned variable : graph_->replica_numbers) {
    plan_->replica_numbers.push_back(layout_.addresses()[variable]);
  }
}

void Compiler::addHostAccess() {
  const auto add = [this](const auto& tensors, auto& plans) {
    for (const auto& [handle, tensor] : tensors) {
      const std::size_t element = tensor.runs.empty() ? 1 : graph_->variables[tensor.runs[0].variable].type.size();
      plans[handle] = hostPlan(handle, tensor.runs, element);
    }
  };
  add(graph_->host_writes, plan_->host_writes);
  add(graph_->host_reads, plan_->host_reads);
}

}  // namespace ipu_model
