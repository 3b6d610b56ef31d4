// The targets of `spike_sparse_matmul`: spikes, in lists or in rows, through the synapses that exist, and the backward
// passes to values, to rows of spikes and to weights.
#include "cpu/synapses/synapses.hpp"
#include "spike_operands.hpp"

namespace snnjax::spike_sparse_matmul {
namespace {

using schema::Axis;

template <typename From>
Synapses synapsesOf(const From& from, const schema::Lengths& lengths, Index group) {
  return {.ends = from.ends.template at<std::int32_t>(group),
          .targets = from.targets.at(group),
          .targets_are_uint16 = from.targets.type() == ffi::U16,
          .neurons = lengths[Axis::kNeurons],
          .count = lengths[Axis::kSynapses],
          .outputs = lengths[Axis::kOutputs]};
}

// Floating weights, or int8 ones with a scale.
SynapseWeights weightsOf(const schema::Sparse<Operand>& weights, const schema::Lengths& lengths, Index group) {
  const Operand& stored = weights.values ? weights.values : weights.array;
  return {stored.numbers(group), weights.scale.numbers(group), lengths[Axis::kOutputs]};
}

template <typename From>
ListedRows listed(const From& from, const schema::Lengths& lengths, Index group, const Threads& threads) {
  const Index neurons = lengths[Axis::kNeurons];
  if constexpr (requires { from.ids; }) {
    return {listsOf(from.ids, from.values, group, neurons), lengths[Axis::kRows], neurons, threads};
  } else {
    return listedRows(from.spikes, group, threads);
  }
}

template <typename From>
void forward(Call<From, Results<Result>>& call) {
  const schema::Lengths lengths = call.check();
  for (Index group = 0; group < call.groups(); ++group) {
    send(listed(call.from, lengths, group, call.threads), synapsesOf(call.from, lengths, group),
         weightsOf(call.from.weights, lengths, group), call.to.out.numbers(group), call.threads);
  }
}

template <typename From>
void toWeights(Call<From, WeightsBackwardResults<Result>>& call) {
  const schema::Lengths lengths = call.check();
  const Index outputs = lengths[Axis::kOutputs], count = lengths[Axis::kRows] * outputs;
  std::vector<float> copy;
  for (Index group = 0; group < call.groups(); ++group) {
    const Numbers g = call.from.g.numbers(group);
    if (g.is_bfloat16) {
      copy.resize(static_cast<std::size_t>(count));
      g.read(0, count, copy.data());
    }
    correlate(listed(call.from, lengths, group, call.threads), synapsesOf(call.from, lengths, group),
              {g.is_bfloat16 ? copy.data() : g.float32(), outputs}, call.to.g_weights.numbers(group), call.threads);
  }
}

void lists(Call<Operands<Operand>, Results<Result>>& call) { forward(call); }
void rows(Call<RowOperands<Operand>, Results<Result>>& call) { forward(call); }
void weightsBackward(Call<WeightsBackwardOperands<Operand>, WeightsBackwardResults<Result>>& call) { toWeights(call); }
void rowsWeightsBackward(Call<RowsWeightsBackwardOperands<Operand>, WeightsBackwardResults<Result>>& call) {
  toWeights(call);
}

void valuesBackward(Call<ValuesBackwardOperands<Operand>, ValuesBackwardResults<Result>>& call) {
  const schema::Lengths lengths = call.check();
  for (Index group = 0; group < call.groups(); ++group) {
    const ListedRows rows(listsOf(call.from.ids, {}, group, lengths[Axis::kNeurons]), lengths[Axis::kRows],
                          call.threads);
    collectToSlots(rows, lengths[Axis::kCapacity], synapsesOf(call.from, lengths, group),
                   call.from.weights.numbers(group), call.from.g.numbers(group), call.to.g_values.numbers(group),
                   call.threads);
  }
}

void rowsBackward(Call<RowsBackwardOperands<Operand>, RowsBackwardResults<Result>>& call) {
  const schema::Lengths lengths = call.check();
  for (Index group = 0; group < call.groups(); ++group) {
    collect(lengths[Axis::kRows], synapsesOf(call.from, lengths, group), call.from.weights.numbers(group),
            call.from.g.numbers(group), call.to.g_spikes.numbers(group), call.threads);
  }
}

}  // namespace
}  // namespace snnjax::spike_sparse_matmul

SNNJAX_TARGET(snnjax_spike_sparse_matmul, "spike_sparse_matmul", snnjax::spike_sparse_matmul::lists);
SNNJAX_TARGET(snnjax_spike_sparse_matmul_values_backward, "spike_sparse_matmul",
              snnjax::spike_sparse_matmul::valuesBackward);
SNNJAX_TARGET(snnjax_spike_sparse_matmul_weights_backward, "spike_sparse_matmul",
              snnjax::spike_sparse_matmul::weightsBackward);
SNNJAX_TARGET(snnjax_spike_sparse_matmul_rows, "spike_sparse_matmul", snnjax::spike_sparse_matmul::rows);
SNNJAX_TARGET(snnjax_spike_sparse_matmul_rows_backward, "spike_sparse_matmul",
              snnjax::spike_sparse_matmul::rowsBackward);
SNNJAX_TARGET(snnjax_spike_sparse_matmul_rows_weights_backward, "spike_sparse_matmul",
              snnjax::spike_sparse_matmul::rowsWeightsBackward);
