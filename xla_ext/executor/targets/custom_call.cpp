// The library's own ops: the one table of their targets.
#include <unordered_map>

#include "executor/targets/targets.hpp"

namespace snnjax::executor {

// Each stands in a file of its own beside this one.
namespace targets {
extern const Target kSpikeMatmul, kSpikeMatmulValuesBackward, kSpikeMatmulWeightsBackward, kSelectSpikes,
    kSelectSpikesBackward, kLifStep, kLifStepBackward, kLifNetwork, kLifNetworkBackward;
}  // namespace targets

namespace {

const targets::Target* findTarget(const std::string& name) {
  static const std::unordered_map<std::string, const targets::Target*> kTargets = {
      {"snnjax_spike_matmul", &targets::kSpikeMatmul},
      {"snnjax_spike_matmul_values_backward", &targets::kSpikeMatmulValuesBackward},
      {"snnjax_spike_matmul_weights_backward", &targets::kSpikeMatmulWeightsBackward},
      {"snnjax_select_spikes", &targets::kSelectSpikes},
      {"snnjax_select_spikes_backward", &targets::kSelectSpikesBackward},
      {"snnjax_lif_step", &targets::kLifStep},
      {"snnjax_lif_step_backward", &targets::kLifStepBackward},
      {"snnjax_lif_network", &targets::kLifNetwork},
      {"snnjax_lif_network_backward", &targets::kLifNetworkBackward},
  };
  const auto found = kTargets.find(name);
  return found == kTargets.end() ? nullptr : found->second;
}

void check(const OperationCheck& op) { op.need(!op.instruction().texts.empty(), "have a target"); }

void lower(Lowering& lowering, const Instruction& instruction) {
  const targets::Target* const target = findTarget(instruction.texts[0]);
  if (target == nullptr) lowering.refuse(instruction, "has no codelets", "Run this part on the CPU");
  target->lower(lowering, instruction);
}

std::vector<Proposal> propose(const Plan& plan, const Instruction& instruction, const poplar::Target& target) {
  const targets::Target* const own = findTarget(instruction.texts[0]);
  return own == nullptr || own->propose == nullptr ? std::vector<Proposal>{} : own->propose(plan, instruction, target);
}

}  // namespace

namespace ops {
extern const Operation kCustomCall = {check, lower, propose};
}

}  // namespace snnjax::executor
