#include "executor/plan/check_plan.hpp"

#include <algorithm>
#include <builders/error.hpp>

namespace snnjax::executor {
namespace {

[[noreturn]] void refuse(const std::string& expected, const std::string& actual) {
  throw Error(ErrorCode::kInvalidArgument, "compile: `plan` must " + expected + ", got " + actual +
                                               ". Compile the function anew with this version of snnjax.");
}

// Follows the order in which values are defined, and which of them blocks can see.
class Definitions {
 public:
  explicit Definitions(const Plan& plan) : plan_(plan), states_(plan.types.size(), State::kUndefined) {}

  void define(ValueId value) {
    if (value >= states_.size()) refuse("name values that have a type", number(value));
    if (states_[value] != State::kUndefined) refuse("define each value once", number(value) + " again");
    states_[value] = State::kVisible;
    order_.push_back(value);
  }
  void use(ValueId value) const {
    if (value >= states_.size() || states_[value] != State::kVisible) {
      refuse("define values before they are used", number(value));
    }
  }

  void check(const Block& block) {
    const std::size_t outside = order_.size();
    for (const ValueId value : block.parameters) define(value);
    for (const Instruction& instruction : block.instructions) {
      for (const ValueId value : instruction.inputs) use(value);
      for (const Block& inner : instruction.blocks) check(inner);
      for (const ValueId value : instruction.outputs) define(value);
      checkInstruction(plan_, instruction);
    }
    for (const ValueId value : block.results) use(value);
    for (; order_.size() > outside; order_.pop_back()) states_[order_.back()] = State::kGone;
  }

 private:
  enum class State : std::uint8_t { kUndefined, kVisible, kGone };

  static std::string number(ValueId value) { return "value " + std::to_string(value); }

  const Plan& plan_;
  std::vector<State> states_;
  std::vector<ValueId> order_;
};

void checkConstant(const Plan& plan, const Constant& constant) {
  const ArrayType& type = plan.types[constant.value];
  const std::size_t wanted = constant.is_splat ? numBytes(type.dtype) : type.numBytes();
  if (constant.bytes.size() == wanted) return;
  refuse("have the bytes of its constants", std::to_string(constant.bytes.size()) + " for " + type.toString());
}

void checkAliases(const Plan& plan) {
  std::vector<bool> parameters(plan.main.parameters.size()), results(plan.main.results.size());
  for (const auto& [parameter, result] : plan.aliases) {
    const bool known = parameter < parameters.size() && result < results.size();
    if (!known || parameters[parameter] || results[result]) {
      refuse("pair each parameter and result once", std::to_string(parameter) + " with " + std::to_string(result));
    }
    parameters[parameter] = results[result] = true;
    const ArrayType& from = plan.types[plan.main.parameters[parameter]];
    const ArrayType& to = plan.types[plan.main.results[result]];
    if (from != to) refuse("pair parameters and results of one type", from.toString() + " and " + to.toString());
  }
  for (const std::size_t parameter : plan.donated) {
    if (parameter >= parameters.size()) refuse("donate its own parameters", std::to_string(parameter));
  }
}

}  // namespace

void checkPlan(const Plan& plan) {
  constexpr std::size_t kMaxPartitions = 1024;
  if (plan.num_partitions == 0 || plan.num_partitions > kMaxPartitions) {
    refuse("have 1 to 1024 partitions", std::to_string(plan.num_partitions));
  }
  if (plan.devices.size() != plan.num_partitions) {
    refuse("name a device for each partition", std::to_string(plan.devices.size()));
  }
  for (const std::size_t device : plan.devices) {
    if (std::ranges::count(plan.devices, device) > 1) {
      refuse("name each device once", "device " + std::to_string(device) + " again");
    }
  }
  Definitions definitions(plan);
  for (const Constant& constant : plan.constants) {
    definitions.define(constant.value);
    checkConstant(plan, constant);
  }
  definitions.check(plan.main);
  checkAliases(plan);
}

}  // namespace snnjax::executor
