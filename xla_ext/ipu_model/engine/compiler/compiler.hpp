// From programs to plans.
#pragma once

#include <memory>
#include <poplar/Program.hpp>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/compiler/copies.hpp"
#include "engine/compiler/layout.hpp"
#include "engine/executable/plan.hpp"
#include "program/nodes.hpp"

namespace ipu_model {

// Which phases of the exchange take most of a tile's memory, for messages.
class LargestPhases {
 public:
  // Of a phase that has been added to the account.
  void note(const std::string& name, const std::vector<TileBytes>& before, const std::vector<TileBytes>& after);
  struct OfTile {
    std::uint64_t code = 0;  // bytes of the phase with most of it
    std::string code_of, buffers_of;
  };
  const OfTile& of(std::size_t tile) const { return tiles_[tile]; }

 private:
  std::vector<OfTile> tiles_;
};

// Bytes. Assumed: public programs set 0x180 to 0x1000, and the largest array on the stack of a codelet of ours has 512.
inline constexpr std::uint64_t kWorkerStack = 1024;

class Compiler {
 public:
  explicit Compiler(std::shared_ptr<GraphData> graph);

  struct Options {
    bool fail_out_of_memory = true;
    bool ignore_estimates = false;  // of setPerfEstimate: vertices cost what their own functions say
    std::uint64_t worker_stack = kWorkerStack;
  };
  // Throws where a program breaks a rule of the hardware; too little memory is one unless the options say otherwise.
  std::shared_ptr<const Plan> compile(std::span<const poplar::program::Program> programs, const Options& options);

 private:
  BlockId block(const Node& node);
  void append(const Node& node, Block& block);

  Step step(const nodes::Execute& node, const std::string& name);
  static void joinRequests(const Block& before, Step& next);
  Step step(const nodes::StreamCopy& node, const std::string& name);
  Step step(const nodes::RemoteCopy& node, const std::string& name);
  Step step(const nodes::Repeat& node, const std::string& name);
  Step step(const nodes::RepeatWhile& node, const std::string& name);
  Step step(const nodes::Switch& node, const std::string& name);
  Step step(const nodes::Call& node, const std::string& name);
  Step step(const nodes::HostCall& node, const std::string& name);
  Step step(const nodes::Sync& node, const std::string& name);
  Step step(const nodes::Print& node, const std::string& name);
  Step step(const nodes::Error& node, const std::string& name);
  Step step(const nodes::CycleStamp& node, const std::string& name);

  void appendCopy(const nodes::Copy& node, const std::string& name, Block& block);
  void closeCopies();
  void appendCrossReplica(const nodes::CrossReplicaCopy& node, const std::string& name, Block& block);  // replicas.cpp
  void priceCrossing(std::uint32_t copy);

  std::uint32_t computeSet(unsigned id);
  std::uint32_t hostPlan(const std::string& name, std::span<const Run> runs, std::size_t element);
  std::uint32_t hostPlan(const std::string& name, const poplar::Tensor& tensor);
  void addInitialValues();
  void addHostAccess();

  std::shared_ptr<GraphData> graph_;
  Layout layout_;
  std::shared_ptr<Plan> plan_;
  std::vector<std::vector<std::uint32_t>> vertices_;          // of each compute set
  std::unordered_map<unsigned, std::uint32_t> compute_sets_;  // planned ones
  std::unordered_map<const ProgramNode*, BlockId> blocks_;
  LargestPhases largest_phases_;
  CopyGroup copies_;  // the ones at the end of the block that is being planned
  struct Crossing {   // likewise of copies from replica to replica
    std::vector<Transfer> transfers;
    SpanSet read, written;
    std::vector<std::uint64_t> code;  // of the exchange, by tile
  } crossing_;
};

// ---- Memory (memory.cpp) ----

// Adds variables, values of vertices, code and stacks to the plan's account.
void addMemory(Plan& plan, const Layout& layout, std::uint64_t worker_stack);
// Throws graph_memory_allocation_error where a tile holds more than it can.
void checkMemory(const Plan& plan, const Layout& layout, const LargestPhases& phases);

}  // namespace ipu_model
