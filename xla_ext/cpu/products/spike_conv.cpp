// The targets of `spike_conv`: the convolution of spikes, in lists or in rows, and its backward passes to values, to
// inputs and to weights.
#include "convolution_products.hpp"
#include "spike_operands.hpp"

namespace snnjax::spike_conv {
namespace {

using schema::Axis;

// The geometry, which is checked before anything is read or written.
struct Convolution : NoLayers, ConvolutionShape {
  explicit Convolution(const Attributes& attributes) : ConvolutionShape(of(Geometry::read(attributes))) {
    if (!isValid()) throw misfit(attributes.op(), "geometry", "be that of a convolution", "another one");
  }

  void fix(schema::Lengths& lengths) const {
    lengths.fix(Axis::kNeurons, numInputs());
    lengths.fix(Axis::kOutputs, numOutputs());
    lengths.fix(Axis::kKernelHeight, kernel_height);
    lengths.fix(Axis::kKernelWidth, kernel_width);
    lengths.fix(Axis::kGroupInputs, groupInputs());
    lengths.fix(Axis::kChannelsOut, channels_out);
  }
};

template <typename From, typename To>
using ConvCall = Call<From, To, Convolution>;

ListedRows listed(const Operand& ids, const Operand& values, Index group, Index neurons, const Threads& threads) {
  return {listsOf(ids, values, group, neurons), ids.length(0), neurons, threads};
}

void lists(ConvCall<Operands<Operand>, Results<Result>>& call) {
  const Index neurons = call.check()[Axis::kNeurons];
  for (Index group = 0; group < call.groups(); ++group) {
    convolve(listed(call.from.ids, call.from.values, group, neurons, call.threads), {nullptr, 0}, call.numbers,
             call.from.weights.numbers(group), call.to.out.numbers(group), call.threads);
  }
}

void valuesBackward(ConvCall<ValuesBackwardOperands<Operand>, ValuesBackwardResults<Result>>& call) {
  const schema::Lengths lengths = call.check();
  for (Index group = 0; group < call.groups(); ++group) {
    const ListedRows rows(listsOf(call.from.ids, {}, group, lengths[Axis::kNeurons]), lengths[Axis::kRows],
                          call.threads);
    convolveToSlots(rows, lengths[Axis::kCapacity], call.numbers, call.from.weights.numbers(group),
                    call.from.g.numbers(group), call.to.g_values.numbers(group), call.threads);
  }
}

void weightsBackward(ConvCall<WeightsBackwardOperands<Operand>, WeightsBackwardResults<Result>>& call) {
  const Index neurons = call.check()[Axis::kNeurons];
  for (Index group = 0; group < call.groups(); ++group) {
    convolveToWeights(listed(call.from.ids, call.from.values, group, neurons, call.threads), {nullptr, 0}, call.numbers,
                      call.from.g.numbers(group), call.to.g_weights.numbers(group), call.threads);
  }
}

void rows(ConvCall<RowOperands<Operand>, Results<Result>>& call) {
  call.check();
  for (Index group = 0; group < call.groups(); ++group) {
    convolve(listedRows(call.from.spikes, group, call.threads), rowsOf(call.from.spikes, group).inPlace(), call.numbers,
             call.from.weights.numbers(group), call.to.out.numbers(group), call.threads);
  }
}

void rowsBackward(ConvCall<RowsBackwardOperands<Operand>, WeightsBackwardResults<Result>>& call) {
  call.check();
  for (Index group = 0; group < call.groups(); ++group) {
    convolveToWeights(listedRows(call.from.spikes, group, call.threads), rowsOf(call.from.spikes, group).inPlace(),
                      call.numbers, call.from.g.numbers(group), call.to.g_weights.numbers(group), call.threads);
  }
}

void inputsBackward(ConvCall<InputsBackwardOperands<Operand>, InputsBackwardResults<Result>>& call) {
  const Index rows = call.check()[Axis::kRows];
  for (Index group = 0; group < call.groups(); ++group) {
    convolveToInputs(rows, call.numbers, call.from.weights.numbers(group), call.from.g.numbers(group),
                     call.to.g_spikes.numbers(group), call.threads);
  }
}

}  // namespace
}  // namespace snnjax::spike_conv

SNNJAX_TARGET(snnjax_spike_conv, "spike_conv", snnjax::spike_conv::lists);
SNNJAX_TARGET(snnjax_spike_conv_values_backward, "spike_conv", snnjax::spike_conv::valuesBackward);
SNNJAX_TARGET(snnjax_spike_conv_weights_backward, "spike_conv", snnjax::spike_conv::weightsBackward);
SNNJAX_TARGET(snnjax_spike_conv_rows, "spike_conv", snnjax::spike_conv::rows);
SNNJAX_TARGET(snnjax_spike_conv_rows_backward, "spike_conv", snnjax::spike_conv::rowsBackward);
SNNJAX_TARGET(snnjax_spike_conv_inputs_backward, "spike_conv", snnjax::spike_conv::inputsBackward);
