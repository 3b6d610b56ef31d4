#include "engine/profile/program_order.hpp"

#include <algorithm>
#include <limits>
#include <variant>

namespace ipu_model {
namespace {

constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();

}  // namespace

ProgramOrder::ProgramOrder(const Plan& plan)
    : compute_sets(plan.compute_sets.size(), kUnknown),
      copies(plan.copies.size(), kUnknown),
      host(plan.host.size(), kUnknown),
      plan_(&plan),
      walked_(plan.blocks.size(), false) {
  for (const BlockId program : plan.programs) walk(program);
  for (std::vector<std::uint64_t>* positions : {&compute_sets, &copies, &host}) {
    std::replace(positions->begin(), positions->end(), kUnknown, next_);
  }
}

void ProgramOrder::walk(BlockId block) {
  if (walked_[block]) return;
  walked_[block] = true;
  for (const Step& step : plan_->blocks[block]) {
    std::visit([this](const auto& what) { visit(what); }, step);
  }
}

void ProgramOrder::visit(const StepWhile& step) {
  walk(step.condition);
  walk(step.body);
}

void ProgramOrder::visit(const StepSwitch& step) {
  for (const auto& [value, body] : step.cases) walk(body);
  walk(step.otherwise);
}

void ProgramOrder::visit(const StepHostCall& step) {
  for (const std::uint32_t input : step.inputs) number(host[input]);
  for (const std::uint32_t output : step.outputs) number(host[output]);
}

void ProgramOrder::number(std::uint64_t& position) {
  if (position == kUnknown) position = next_++;
}

}  // namespace ipu_model
