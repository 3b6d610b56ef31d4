#include "executor/plan/cost.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_set>

namespace snnjax::executor {
namespace {

using Names = std::unordered_set<std::string_view>;

const Names kViews = {"broadcast_in_dim", "reshape", "identity", "transpose", "slice",
                      "reverse",          "pad",     "iota",     "bitcast",   "concatenate"};
const Names kTranscendentals = {"rsqrt",        "sqrt", "cbrt",     "exponential", "exponential_minus_one",
                                "log",          "tanh", "sine",     "cosine",      "tan",
                                "log_plus_one", "erf",  "logistic", "atan2",       "power"};
// Steps of elementwise programs that move or represent elements.
const Names kMoves = {"load", "store", "constant", "round", "wrap"};
// One operation for each element of the input.
const Names kReductions = {"reduce", "arg_reduce", "cumulative", "all_reduce", "reduce_scatter"};

Cost costOf(const Plan& plan, const Block& block);

std::size_t elementsOf(const Plan& plan, ValueId value) { return plan.types[value].numElements(); }

double bytesOf(const Plan& plan, const std::vector<ValueId>& values) {
  double bytes = 0;
  for (const ValueId value : values) bytes += static_cast<double>(plan.types[value].numBytes());
  return bytes;
}

// Reads and writes of windows leave the rest of the array alone: the windows move, and indices are read.
double bytesOfWindows(const Plan& plan, const Instruction& instruction) {
  const double inputs = bytesOf(plan, instruction.inputs) - bytesOf(plan, {instruction.inputs[0]});
  if (instruction.op == "gather" || instruction.op == "dynamic_slice") {
    return inputs + 2 * bytesOf(plan, instruction.outputs);
  }
  const ValueId windows = instruction.inputs[instruction.op == "scatter" ? 2 : 1];
  return inputs + bytesOf(plan, {windows});
}

Cost costOfProgram(const Plan& plan, const Instruction& instruction) {
  Cost cost;
  const auto elements = static_cast<double>(elementsOf(plan, instruction.outputs[0]));
  for (const std::string_view step : instruction.texts) {
    const std::string_view name = step.substr(0, step.find('.'));
    if (kTranscendentals.contains(name)) {
      cost.transcendentals += elements;
    } else if (!kMoves.contains(name) && !name.starts_with("convert")) {
      cost.flops += elements;
    }
  }
  return cost;
}

double flopsOfProduct(const Plan& plan, const Instruction& instruction) {
  double depth = 1;
  for (const std::int64_t d : instruction.ints[2]) {
    depth *= static_cast<double>(plan.types[instruction.inputs[0]].shape[static_cast<std::size_t>(d)]);
  }
  return 2 * depth * static_cast<double>(elementsOf(plan, instruction.outputs[0]));
}

Cost costOfLoop(const Plan& plan, const Instruction& instruction) {
  if (instruction.op == "repeat") {
    return costOf(plan, instruction.blocks[0]) * static_cast<double>(instruction.ints[0][0]);
  }
  Cost most;
  for (const Block& block : instruction.blocks) {
    const Cost cost = costOf(plan, block);
    if (instruction.op == "while") {
      most += cost;
    } else if (cost.bytes_accessed >= most.bytes_accessed) {
      most = cost;
    }
  }
  return most;
}

Cost costOf(const Plan& plan, const Instruction& instruction) {
  const std::string& op = instruction.op;
  if (kViews.contains(op)) return {};
  if (!instruction.blocks.empty()) return costOfLoop(plan, instruction);
  Cost cost;
  if (op == "elementwise") cost = costOfProgram(plan, instruction);
  if (op == "dot") cost.flops = flopsOfProduct(plan, instruction);
  if (kReductions.contains(op)) cost.flops = static_cast<double>(elementsOf(plan, instruction.inputs[0]));
  if (op == "scatter" && instruction.texts[0] != "set") {
    cost.flops = static_cast<double>(elementsOf(plan, instruction.inputs[2]));
  }
  const bool has_windows = op == "gather" || op == "scatter" || op == "dynamic_slice" || op == "dynamic_update_slice";
  cost.bytes_accessed = has_windows ? bytesOfWindows(plan, instruction)
                                    : bytesOf(plan, instruction.inputs) + bytesOf(plan, instruction.outputs);
  return cost;
}

Cost costOf(const Plan& plan, const Block& block) {
  Cost cost;
  for (const Instruction& instruction : block.instructions) cost += costOf(plan, instruction);
  return cost;
}

}  // namespace

Cost& Cost::operator+=(const Cost& other) {
  flops += other.flops;
  transcendentals += other.transcendentals;
  bytes_accessed += other.bytes_accessed;
  return *this;
}

Cost Cost::operator*(double times) const { return {flops * times, transcendentals * times, bytes_accessed * times}; }

Cost costOf(const Plan& plan) { return costOf(plan, plan.main); }

}  // namespace snnjax::executor
