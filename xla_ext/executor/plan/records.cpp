#include "executor/plan/records.hpp"

#include <utility>

#include "executor/operations.hpp"

namespace snnjax::executor {
namespace {

// Values that hold something of a record, until no more are found: blocks of loops read their own results.
class Found {
 public:
  explicit Found(const Plan& plan) : plan_(plan), records_(plan.types.size(), false) {}

  bool has(ValueId value) const { return records_[value]; }
  bool grows() { return std::exchange(has_grown_, false); }

  void add(ValueId value, bool is_record) {
    if (!is_record || records_[value] || plan_.types[value].numElements() == 0) return;
    records_[value] = has_grown_ = true;
  }

  void visit(const Block& block) {
    for (const Instruction& instruction : block.instructions) visit(instruction);
  }

 private:
  void visit(const Instruction& instruction) {
    const std::vector<ValueId>& outputs = instruction.outputs;
    for (const Block& block : instruction.blocks) visit(instruction, block);
    const bool is_loop = !instruction.blocks.empty() && outputs.size() == instruction.inputs.size();
    if (is_loop) {
      for (std::size_t i = 0; i < outputs.size(); ++i) add(outputs[i], has(instruction.inputs[i]));
      return;
    }
    const RecordPlaces places = recordPlacesOf(instruction);
    bool reads = false;
    for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
      const bool is_its_own = places.first_input <= i && i < places.last_input;
      reads = reads || (!is_its_own && has(instruction.inputs[i]));
    }
    if (reads && instruction.op == "callback") refuseCallback(instruction);
    for (std::size_t i = 0; i < outputs.size(); ++i) add(outputs[i], reads || i >= places.first_output);
  }

  // Of a loop or a branch. The one result of a condition decides over all.
  void visit(const Instruction& instruction, const Block& block) {
    const auto flow = [this](const std::vector<ValueId>& from, const std::vector<ValueId>& to) {
      for (std::size_t i = 0; i < to.size() && i < from.size(); ++i) add(to[i], has(from[i]));
    };
    flow(instruction.inputs, block.parameters);
    visit(block);
    if (block.results.size() == instruction.outputs.size()) {
      flow(block.results, block.parameters);
      flow(block.results, instruction.outputs);
    } else if (!block.results.empty()) {
      for (const ValueId output : instruction.outputs) add(output, has(block.results[0]));
    }
  }

  [[noreturn]] void refuseCallback(const Instruction& instruction) const {
    refuse(plan_, instruction, "the record of a forward pass stays on the tiles, and the host cannot read it",
           "Call it with results of the op");
  }

  const Plan& plan_;
  std::vector<bool> records_;
  bool has_grown_ = false;
};

}  // namespace

std::vector<bool> recordsAmongResults(const Plan& plan, const std::vector<bool>& parameters) {
  Found found(plan);
  for (std::size_t i = 0; i < parameters.size(); ++i) found.add(plan.main.parameters[i], parameters[i]);
  do {
    found.visit(plan.main);
  } while (found.grows());
  std::vector<bool> results;
  for (const ValueId result : plan.main.results) results.push_back(found.has(result));
  return results;
}

}  // namespace snnjax::executor
