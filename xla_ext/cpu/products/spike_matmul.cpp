// The targets of `spike_matmul`: the product of spike lists with weights and its two backward passes, and the same for
// rows of spikes, where only the weights' backward pass profits from sparsity.
#include "list_products.hpp"
#include "spike_operands.hpp"

namespace snnjax::spike_matmul {
namespace {

using schema::Axis;

// Floating weights, or int8 ones with a scale.
snnjax::Weights weightsOf(const schema::Weights<Operand>& weights, const schema::Lengths& lengths, Index group) {
  const Operand& stored = weights.values ? weights.values : weights.array;
  return {stored.numbers(group), lengths[Axis::kNeurons], lengths[Axis::kOutputs], weights.scale.numbers(group)};
}

void lists(Call<Operands<Operand>, Results<Result>>& call) {
  const schema::Lengths lengths = call.check();
  const Index neurons = lengths[Axis::kNeurons];
  for (Index group = 0; group < call.groups(); ++group) {
    const ListedRows rows(listsOf(call.from.ids, call.from.values, group, neurons), lengths[Axis::kRows], neurons,
                          call.threads);
    multiplyLists(rows, weightsOf(call.from.weights, lengths, group), call.to.out.numbers(group), call.threads);
  }
}

void valuesBackward(Call<ValuesBackwardOperands<Operand>, ValuesBackwardResults<Result>>& call) {
  const schema::Lengths lengths = call.check();
  const Index neurons = lengths[Axis::kNeurons];
  for (Index group = 0; group < call.groups(); ++group) {
    const ListedRows rows(listsOf(call.from.ids, {}, group, neurons), lengths[Axis::kRows], call.threads);
    dotLists(rows, lengths[Axis::kCapacity], {call.from.weights.numbers(group), neurons, lengths[Axis::kOutputs]},
             call.from.g.numbers(group), call.to.g_values.numbers(group), call.threads);
  }
}

void weightsBackward(Call<WeightsBackwardOperands<Operand>, WeightsBackwardResults<Result>>& call) {
  const schema::Lengths lengths = call.check();
  const Index neurons = lengths[Axis::kNeurons], count = lengths[Axis::kRows];
  for (Index group = 0; group < call.groups(); ++group) {
    const ListedRows rows(listsOf(call.from.ids, call.from.values, group, neurons), count, neurons, call.threads);
    multiplyLists(rows.transposed(), {call.from.g.numbers(group), count, lengths[Axis::kOutputs]},
                  call.to.g_weights.numbers(group), call.threads);
  }
}

void rows(Call<RowOperands<Operand>, Results<Result>>& call) {
  const schema::Lengths lengths = call.check();
  for (Index group = 0; group < call.groups(); ++group) {
    multiplyLists(listedRows(call.from.spikes, group, call.threads), weightsOf(call.from.weights, lengths, group),
                  call.to.out.numbers(group), call.threads);
  }
}

void rowsBackward(Call<RowsBackwardOperands<Operand>, WeightsBackwardResults<Result>>& call) {
  const schema::Lengths lengths = call.check();
  for (Index group = 0; group < call.groups(); ++group) {
    multiplyLists(listedRows(call.from.spikes, group, call.threads).transposed(),
                  {call.from.g.numbers(group), lengths[Axis::kRows], lengths[Axis::kOutputs]},
                  call.to.g_weights.numbers(group), call.threads);
  }
}

}  // namespace
}  // namespace snnjax::spike_matmul

SNNJAX_TARGET(snnjax_spike_matmul, "spike_matmul", snnjax::spike_matmul::lists);
SNNJAX_TARGET(snnjax_spike_matmul_values_backward, "spike_matmul", snnjax::spike_matmul::valuesBackward);
SNNJAX_TARGET(snnjax_spike_matmul_weights_backward, "spike_matmul", snnjax::spike_matmul::weightsBackward);
SNNJAX_TARGET(snnjax_spike_matmul_rows, "spike_matmul", snnjax::spike_matmul::rows);
SNNJAX_TARGET(snnjax_spike_matmul_rows_backward, "spike_matmul", snnjax::spike_matmul::rowsBackward);
