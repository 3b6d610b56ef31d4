#include "executor/operations.hpp"

#include <unordered_map>

namespace snnjax::executor {

// Each has a file in ops/ with its check and its lowering.
namespace ops {
extern const Operation kElementwise, kBroadcastInDim, kReshape, kTranspose, kTransposed, kSlice, kReverse, kConcatenate,
    kPad, kIota, kBitcast, kReduce, kArgReduce, kCumulative, kDot, kGather, kScatter, kDynamicSlice,
    kDynamicUpdateSlice, kSort, kTopK, kThreefry, kWhile, kRepeat, kCase, kCallback, kAllReduce, kAllGather,
    kReduceScatter, kAllToAll, kCollectivePermute, kPartitionId;
}  // namespace ops

// Each has a file in targets/ with its check, its lowering and its proposals.
namespace targets {
extern const Operation kSpikeMatmul, kSpikeMatmulSpikesBackward, kSpikeMatmulWeightsBackward, kSelectSpikes,
    kSelectSpikesBackward, kLifNetwork, kLifNetworkBackward;
}  // namespace targets

namespace {

using Table = std::unordered_map<std::string, const Operation*>;

// The library's own ops, by the target of a custom_call.
const Operation* findTarget(const std::string& name) {
  // Never destroyed: threads may outlive everything else.
  static const auto& kTargets = *new Table{
      {"snnjax_spike_matmul", &targets::kSpikeMatmul},
      {"snnjax_spike_matmul_spikes_backward", &targets::kSpikeMatmulSpikesBackward},
      {"snnjax_spike_matmul_weights_backward", &targets::kSpikeMatmulWeightsBackward},
      {"snnjax_select_spikes", &targets::kSelectSpikes},
      {"snnjax_select_spikes_backward", &targets::kSelectSpikesBackward},
      {"snnjax_lif_network", &targets::kLifNetwork},
      {"snnjax_lif_network_backward", &targets::kLifNetworkBackward},
  };
  const auto found = kTargets.find(name);
  return found == kTargets.end() ? nullptr : found->second;
}

void checkCustomCall(const OperationCheck& op) {
  op.need(!op.instruction().texts.empty(), "have a target");
  if (const Operation* const own = findTarget(op.instruction().texts[0])) own->check(op);
}

void lowerCustomCall(Lowering& lowering, const Instruction& instruction) {
  const Operation* const target = findTarget(instruction.texts[0]);
  if (target == nullptr) lowering.refuse(instruction, "has no codelets", "Run this part on the CPU");
  target->lower(lowering, instruction);
}

std::vector<Proposal> proposeCustomCall(const Plan& plan, const Instruction& instruction,
                                        const poplar::Target& target) {
  const Operation* const own = findTarget(instruction.texts[0]);
  return own == nullptr || own->propose == nullptr ? std::vector<Proposal>{} : own->propose(plan, instruction, target);
}

constexpr Operation kCustomCall = {checkCustomCall, lowerCustomCall, proposeCustomCall};

const Table& operations() {
  // Never destroyed, as kTargets.
  static const auto& kOperations = *new Table{
      {"elementwise", &ops::kElementwise},
      {"broadcast_in_dim", &ops::kBroadcastInDim},
      {"reshape", &ops::kReshape},
      {"identity", &ops::kReshape},
      {"transpose", &ops::kTranspose},
      {"transposed", &ops::kTransposed},
      {"slice", &ops::kSlice},
      {"reverse", &ops::kReverse},
      {"concatenate", &ops::kConcatenate},
      {"pad", &ops::kPad},
      {"iota", &ops::kIota},
      {"bitcast", &ops::kBitcast},
      {"reduce", &ops::kReduce},
      {"arg_reduce", &ops::kArgReduce},
      {"cumulative", &ops::kCumulative},
      {"dot", &ops::kDot},
      {"gather", &ops::kGather},
      {"scatter", &ops::kScatter},
      {"dynamic_slice", &ops::kDynamicSlice},
      {"dynamic_update_slice", &ops::kDynamicUpdateSlice},
      {"sort", &ops::kSort},
      {"top_k", &ops::kTopK},
      {"threefry", &ops::kThreefry},
      {"while", &ops::kWhile},
      {"repeat", &ops::kRepeat},
      {"case", &ops::kCase},
      {"callback", &ops::kCallback},
      {"all_reduce", &ops::kAllReduce},
      {"all_gather", &ops::kAllGather},
      {"reduce_scatter", &ops::kReduceScatter},
      {"all_to_all", &ops::kAllToAll},
      {"collective_permute", &ops::kCollectivePermute},
      {"partition_id", &ops::kPartitionId},
      {"custom_call", &kCustomCall},
  };
  return kOperations;
}

// Lowerings divide elements among the tiles, so there must be some. Only vectors of indices may be empty, for a window
// at the start.
void checkElements(const OperationCheck& op) {
  const std::string& name = op.instruction().op;
  if (name == "custom_call" || name == "callback") return;
  const bool has_indices = name == "gather" || name == "scatter";
  for (std::size_t i = 0; i < op.numInputs(); ++i) {
    op.need(op.input(i).numElements() > 0 || (has_indices && i == 1), "have elements");
  }
  for (std::size_t i = 0; i < op.numOutputs(); ++i) op.need(op.output(i).numElements() > 0, "have elements");
}

}  // namespace

const Operation& operationNamed(const std::string& name) {
  const auto found = operations().find(name);
  if (found != operations().end()) return *found->second;
  throw Error(ErrorCode::kUnimplemented, "compile: `plan` must hold operations of its README, got \"" + name +
                                             "\". Use an snnjax of one version throughout.");
}

void checkInstruction(const Plan& plan, const Instruction& instruction) {
  const Operation& operation = operationNamed(instruction.op);
  const OperationCheck op(plan, instruction);
  checkElements(op);
  operation.check(op);
}

}  // namespace snnjax::executor
