// The targets of `spike_matmul`. Rows of spikes have no kernel for their own gradient: it is dense, a product of XLA.
#include "list_products.hpp"
#include "product.hpp"

namespace snnjax::spike_matmul {
namespace {

// Floating weights, or int8 ones with a scale.
Weights weightsOf(const schema::Weights<Operand>& weights, const auto& of) {
  const Operand& stored = weights.values ? weights.values : weights.array;
  return {of.numbers(stored), of.neurons(), of.outputs(), of.numbers(weights.scale)};
}

void forward(Call<Operands<Operand>, Results<Result>>& call) {
  forEachGroup(call, [&](const auto& of) {
    multiplyLists(of.spikes(), weightsOf(call.from.weights, of), of.numbers(call.to.out), call.threads);
  });
}

void spikesBackward(Call<SpikesBackwardOperands<Operand>, SpikesBackwardResults<Result>>& call) {
  if (!call.from.ids) throw misfit("spike_matmul", "ids", "be given", "nothing");
  needSameForm("spike_matmul", call.from, call.to);
  forEachGroup(call, [&](const auto& of) {
    dotLists(of.slots(), of[schema::Axis::kCapacity], {of.numbers(call.from.weights), of.neurons(), of.outputs()},
             of.numbers(call.from.g), of.numbers(call.to.g_values), call.threads);
  });
}

void weightsBackward(Call<WeightsBackwardOperands<Operand>, WeightsBackwardResults<Result>>& call) {
  forEachGroup(call, [&](const auto& of) {
    multiplyLists(of.spikes().transposed(), {of.numbers(call.from.g), of.rows(), of.outputs()},
                  of.numbers(call.to.g_weights), call.threads);
  });
}

}  // namespace
}  // namespace snnjax::spike_matmul

SNNJAX_PRODUCT(spike_matmul);
