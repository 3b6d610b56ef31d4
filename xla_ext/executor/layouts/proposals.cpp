// Where own ops want values to lie, and how far that goes.
#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "executor/layouts/layouts.hpp"

namespace snnjax::executor {
namespace {

// Sets of values that lie together, each named by one of its values.
class Together {
 public:
  explicit Together(const Plan& plan) : plan_(plan), parents_(plan.types.size()) {
    std::iota(parents_.begin(), parents_.end(), ValueId{0});
    for (const auto& [parameter, result] : plan.aliases) {
      join(plan.main.parameters[parameter], plan.main.results[result]);
    }
    visit(plan.main);
  }

  ValueId nameOf(ValueId value) {
    while (parents_[value] != value) value = parents_[value] = parents_[parents_[value]];
    return value;
  }
  // Values that an elementwise operation gives, each a member of its set.
  const std::vector<ValueId>& computed() const { return computed_; }

 private:
  void join(ValueId a, ValueId b) {
    if (withoutOnes(plan_.types[a].shape) == withoutOnes(plan_.types[b].shape)) parents_[nameOf(a)] = nameOf(b);
  }
  void joinEach(const std::vector<ValueId>& a, const std::vector<ValueId>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) join(a[i], b[i]);
  }

  void visit(const Block& block) {
    for (const Instruction& instruction : block.instructions) {
      if (instruction.op == "elementwise") {
        computed_.push_back(instruction.outputs[0]);
        for (const auto* const values : {&instruction.inputs, &instruction.outputs}) {
          for (const ValueId value : *values) join(value, instruction.outputs[0]);
        }
      } else if (instruction.op == "all_reduce" || keepsOrder(plan_, instruction)) {
        join(instruction.inputs[0], instruction.outputs[0]);
      }
      visitBlocks(instruction);
    }
  }

  // What a loop carries and what branches give has one place.
  void visitBlocks(const Instruction& instruction) {
    const bool is_loop = instruction.op == "while" || instruction.op == "repeat";
    if (is_loop) joinEach(instruction.inputs, instruction.outputs);
    for (const Block& block : instruction.blocks) {
      if (is_loop) joinEach(block.parameters, instruction.outputs);
      if (block.results.size() == instruction.outputs.size()) joinEach(block.results, instruction.outputs);
      visit(block);
    }
  }

  const Plan& plan_;
  std::vector<ValueId> parents_, computed_;
};

// Proposals by the set of values that they hold for.
using BySet = std::unordered_map<ValueId, Blocks>;

// An elementwise operation takes as long as its fullest tile, and is slow beside an exchange: weights that are updated
// lie evenly and are brought to the op in each call, unless the op's own tiles have little more of them.
void dropUneven(BySet& proposed, Together& together, std::size_t tiles) {
  constexpr double kMostUneven = 1.25;
  std::unordered_set<ValueId> updated;
  for (const ValueId value : together.computed()) {
    if (proposed.contains(together.nameOf(value))) updated.insert(together.nameOf(value));
  }
  double on_fullest = 0, evenly = 0;
  for (const ValueId set : updated) {
    const Blocks& blocks = proposed.at(set);
    on_fullest += static_cast<double>(ceilDivide(blocks.row_block * blocks.column_block, blocks.spread));
    evenly += static_cast<double>(ceilDivide(blocks.numElements(), tiles));
  }
  if (on_fullest <= kMostUneven * evenly) return;
  for (const ValueId set : updated) proposed.erase(set);
}

}  // namespace

std::unordered_map<ValueId, std::shared_ptr<const Layout>> spreadProposals(const Plan& plan,
                                                                           const std::vector<Proposal>& proposals,
                                                                           std::size_t tiles) {
  std::unordered_map<ValueId, std::shared_ptr<const Layout>> of_values;
  if (proposals.empty()) return of_values;
  Together together(plan);
  BySet proposed;
  for (const Proposal& proposal : proposals) proposed.try_emplace(together.nameOf(proposal.value), proposal.blocks);
  dropUneven(proposed, together, tiles);
  std::unordered_map<ValueId, std::shared_ptr<const Layout>> of_sets;
  for (const auto& [set, blocks] : proposed) of_sets.emplace(set, std::make_shared<const Layout>(blocks, tiles));
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
