#include "executor/registry.hpp"

#include <unordered_map>

#include "executor/targets/targets.hpp"

namespace snnjax::executor {
namespace {

using Table = std::unordered_map<std::string, Lower>;

const Table& lowerings() {
  static const Table kLowerings = {
      {"elementwise", ops::elementwise},
      {"broadcast_in_dim", ops::broadcastInDim},
      {"reshape", ops::reshape},
      {"identity", ops::reshape},
      {"transpose", ops::transpose},
      {"slice", ops::slice},
      {"reverse", ops::reverse},
      {"concatenate", ops::concatenate},
      {"bitcast", ops::bitcast},
      {"while", ops::whileLoop},
      {"repeat", ops::repeat},
      {"case", ops::caseOf},
      {"custom_call", ops::customCall},
      {"callback", ops::callback},
      {"dot", ops::dot},
      {"reduce", ops::reduce},
      {"dynamic_slice", ops::dynamicSlice},
      {"dynamic_update_slice", ops::dynamicUpdateSlice},
      {"all_gather", ops::allGather},
      {"all_reduce", ops::allReduce},
      {"all_to_all", ops::allToAll},
      {"collective_permute", ops::collectivePermute},
      {"reduce_scatter", ops::reduceScatter},
      {"partition_id", ops::partitionId},
      {"iota", ops::iota},
      {"pad", ops::pad},
      {"threefry", ops::threefry},
      {"gather", ops::gather},
      {"scatter", ops::scatter},
      {"sort", ops::sort},
      {"top_k", ops::topK},
      {"arg_reduce", ops::argReduce},
      {"cumulative", ops::cumulative},
  };
  return kLowerings;
}

// Of custom_call, by target.
const Table& targetLowerings() {
  static const Table kTargets = {
      {"snnjax_spike_matmul", targets::spikeMatmul},
      {"snnjax_spike_matmul_values_backward", targets::spikeMatmulValuesBackward},
      {"snnjax_spike_matmul_weights_backward", targets::spikeMatmulWeightsBackward},
      {"snnjax_select_spikes", targets::selectSpikes},
      {"snnjax_select_spikes_backward", targets::selectSpikesBackward},
      {"snnjax_lif_step", targets::lifStep},
      {"snnjax_lif_step_backward", targets::lifStepBackward},
      {"snnjax_lif_network", targets::lifNetwork},
      {"snnjax_lif_network_backward", targets::lifNetworkBackward},
  };
  return kTargets;
}

Lower find(const Table& table, const std::string& name) {
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace

Lower findLowering(const std::string& op) { return find(lowerings(), op); }
Lower findTarget(const std::string& target) { return find(targetLowerings(), target); }

}  // namespace snnjax::executor
