// The layouts that own ops propose, and how far they spread.
#include <algorithm>
#include <numeric>
#include <utility>

#include "executor/layouts/layouts.hpp"

namespace snnjax::executor {
namespace {

// Sets of values with a common layout, each represented by one of its values.
class Together {
 public:
  explicit Together(const Plan& plan) : plan_(plan), parents_(plan.types.size()) {
    std::iota(parents_.begin(), parents_.end(), ValueId{0});
    for (const auto& [parameter, result] : plan.aliases) {
      join(plan.main.parameters[parameter], plan.main.results[result]);
    }
    visit(plan.main, 1);
  }

  ValueId nameOf(ValueId value) {
    while (parents_[value] != value) value = parents_[value] = parents_[parents_[value]];
    return value;
  }
  // Results of elementwise instructions, with the number of operations run per element.
  const std::vector<std::pair<ValueId, double>>& operations() const { return operations_; }

 private:
  void join(ValueId a, ValueId b) {
    if (withoutOnes(plan_.types[a].shape) == withoutOnes(plan_.types[b].shape)) parents_[nameOf(a)] = nameOf(b);
  }
  void joinEach(const std::vector<ValueId>& a, const std::vector<ValueId>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) join(a[i], b[i]);
  }

  void visit(const Block& block, double times) {
    for (const Instruction& instruction : block.instructions) {
      if (instruction.op == "elementwise") {
        operations_.emplace_back(instruction.outputs[0], times * static_cast<double>(instruction.texts.size()));
        for (const auto* const values : {&instruction.inputs, &instruction.outputs}) {
          for (const ValueId value : *values) join(value, instruction.outputs[0]);
        }
      } else if (instruction.op == "all_reduce" || keepsOrder(plan_, instruction)) {
        join(instruction.inputs[0], instruction.outputs[0]);
      }
      visitBlocks(instruction, times * iterationsOf(instruction));
    }
  }

  // A loop's carried values and the results of branches keep one place.
  void visitBlocks(const Instruction& instruction, double times) {
    const bool is_loop = instruction.op == "while" || instruction.op == "repeat";
    if (is_loop) joinEach(instruction.inputs, instruction.outputs);
    for (const Block& block : instruction.blocks) {
      if (is_loop) joinEach(block.parameters, instruction.outputs);
      if (block.results.size() == instruction.outputs.size()) joinEach(block.results, instruction.outputs);
      visit(block, times);
    }
  }

  const Plan& plan_;
  std::vector<ValueId> parents_;
  std::vector<std::pair<ValueId, double>> operations_;
};

// A set of values with a proposal, and what that would change, in cycles of the fullest tile.
struct Candidate {
  Blocks blocks;
  double ways = 0;     // to the op and back, which it saves
  double updates = 0;  // that work on fewer tiles than all
};

// Measured on steps of 512-512-512-10 with Adam, of 31 operations, with and without copies: 142 cycles more for each
// further element that a tile updates, 1.3 less for each word not moved to the op or back. Since then elementwise
// chains have become cheaper, 42 instead of 142 cycles, which decides alike in steps of three networks with SGD,
// momentum, Adam and AdamW.
void count(std::unordered_map<ValueId, Candidate>& candidates, Together& together,
           const std::vector<Proposal>& proposals, std::size_t tiles) {
  constexpr double kWay = 1.3, kOperation = 142.0 / 31;
  const auto onTile = [](const Blocks& blocks) {
    return static_cast<double>(ceilDivide(blocks.row_block * blocks.column_block, blocks.spread));
  };
  for (const Proposal& proposal : proposals) {
    Candidate& candidate =
        candidates.try_emplace(together.nameOf(proposal.value), Candidate{proposal.blocks}).first->second;
    candidate.ways += kWay * proposal.times * onTile(candidate.blocks);
  }
  for (const auto& [value, operations] : together.operations()) {
    const auto found = candidates.find(together.nameOf(value));
    if (found == candidates.end()) continue;
    const Blocks& blocks = found->second.blocks;
    const auto evenly = static_cast<double>(ceilDivide(blocks.numElements(), tiles));
    found->second.updates += kOperation * operations * (onTile(blocks) - evenly);
  }
}

}  // namespace

std::unordered_map<ValueId, std::shared_ptr<const Layout>> spreadProposals(const Plan& plan,
                                                                           const std::vector<Proposal>& proposals,
                                                                           std::size_t tiles) {
  std::unordered_map<ValueId, std::shared_ptr<const Layout>> of_values;
  if (proposals.empty()) return of_values;
  Together together(plan);
  std::unordered_map<ValueId, Candidate> candidates;
  count(candidates, together, proposals, tiles);
  std::unordered_map<ValueId, std::shared_ptr<const Layout>> of_sets;
  for (const auto& [set, candidate] : candidates) {
    if (candidate.updates <= candidate.ways) {
      of_sets.emplace(set, std::make_shared<const Layout>(candidate.blocks, tiles));
    }
  }
  for (ValueId value = 0; value < plan.types.size(); ++value) {
    if (const auto found = of_sets.find(together.nameOf(value)); found != of_sets.end()) {
      of_values.emplace(value, found->second);
    }
  }
  return of_values;
}

bool keepsOrder(const Plan& plan, const Instruction& instruction) {
  const bool is_broadcast = instruction.op == "broadcast_in_dim";
  if (!is_broadcast && instruction.op != "reshape" && instruction.op != "identity" && instruction.op != "bitcast") {
    return false;
  }
  if (is_broadcast && !std::ranges::is_sorted(instruction.ints[0])) return false;
  const Shape &from = plan.types[instruction.inputs[0]].shape, &to = plan.types[instruction.outputs[0]].shape;
  return withoutOnes(from) == withoutOnes(to);
}

}  // namespace snnjax::executor
