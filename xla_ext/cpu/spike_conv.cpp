// The targets of `spike_conv`: the convolution of spikes, in lists or in rows, and its backward passes to values, to
// inputs and to weights.
#include "convolution_products.hpp"
#include "spike_operands.hpp"

namespace snnjax {
namespace {

constexpr const char* kOp = "spike_conv";

// The geometry, in the order of snnjax/ops/spike_conv.py. It is checked before anything is read or written.
ConvolutionShape shapeOf(ffi::Dictionary attributes) {
  const auto given = attributeOf<ffi::Span<const std::int64_t>>(kOp, attributes, "geometry");
  constexpr std::size_t kNumbers = 13;
  Shape n(given.begin(), given.end());
  const ConvolutionShape shape =
      n.size() != kNumbers ? ConvolutionShape{} : ConvolutionShape{n[0], n[1], n[2], n[3],  n[4],  n[5], n[6],
                                                                   n[7], n[8], n[9], n[10], n[11], n[12]};
  if (shape.isValid()) return shape;
  std::string text;
  for (const Index number : n) text += (text.empty() ? "[" : ", ") + std::to_string(number);
  throw misfit(kOp, "geometry", "be that of a convolution", text + "]");
}

// All arrays of a call.
struct Call {
  Operands from;
  Results to;
  ConvolutionShape shape;
  Threads threads;

  Call(ffi::ThreadPool pool, const ffi::RemainingArgs& operands, const ffi::RemainingRets& results,
       ffi::Dictionary attributes)
      : from(kOp, operands), to(kOp, results), shape(shapeOf(attributes)), threads(threadsOf(pool)) {}

  Shape weightsShape() const {
    return {shape.kernel_height, shape.kernel_width, shape.groupInputs(), shape.channels_out};
  }
  // Rows of spikes have a neuron for each input.
  RowOperands takeRows() {
    if (from.nextLength(1) != shape.numInputs()) {
      throw misfit(kOp, "spikes", "have " + std::to_string(shape.numInputs()) + " neurons",
                   std::to_string(from.nextLength(1)));
    }
    return RowOperands(from);
  }
};

// Calls work(call) for a call whose operands and results it takes.
template <typename Work>
ffi::Error handle(ffi::ThreadPool pool, const ffi::RemainingArgs& operands, const ffi::RemainingRets& results,
                  ffi::Dictionary attributes, Work work) {
  return guarded(kOp, [&] {
    Call call(pool, operands, results, attributes);
    work(call);
  });
}

ffi::Error lists(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results,
                 ffi::Dictionary attributes) {
  return handle(pool, operands, results, attributes, [](Call& call) {
    ListOperands lists;
    lists.takeIds(call.from);
    lists.takeValues(call.from);
    const Operand weights = call.from.take("weights", call.weightsShape(), {lists.values.type()});
    const Result out = call.to.take("out", {lists.rows, call.shape.numOutputs()}, {weights.type()});
    finish(call.from, call.to);
    const Index neurons = call.shape.numInputs();
    for (Index group = 0; group < call.to.groups(); ++group) {
      const ListedRows rows(lists.source(group, neurons), lists.rows, neurons, call.threads);
      convolve(rows, {nullptr, 0}, call.shape, weights.numbers(group), out.numbers(group), call.threads);
    }
  });
}

ffi::Error valuesBackward(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results,
                          ffi::Dictionary attributes) {
  return handle(pool, operands, results, attributes, [](Call& call) {
    ListOperands lists;
    lists.takeIds(call.from);
    const Operand weights = call.from.take("weights", call.weightsShape(), kFloating);
    const Operand g = call.from.take("g", {lists.rows, call.shape.numOutputs()}, {weights.type()});
    const Result d_values = call.to.take("d_values", {lists.rows, lists.capacity}, {weights.type()});
    finish(call.from, call.to);
    for (Index group = 0; group < call.to.groups(); ++group) {
      const ListedRows rows(lists.source(group, call.shape.numInputs()), lists.rows, call.threads);
      convolveToSlots(rows, lists.capacity, call.shape, weights.numbers(group), g.numbers(group),
                      d_values.numbers(group), call.threads);
    }
  });
}

ffi::Error weightsBackward(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results,
                           ffi::Dictionary attributes) {
  return handle(pool, operands, results, attributes, [](Call& call) {
    ListOperands lists;
    lists.takeIds(call.from);
    lists.takeValues(call.from);
    const Operand g = call.from.take("g", {lists.rows, call.shape.numOutputs()}, {lists.values.type()});
    const Result d_weights = call.to.take("d_weights", call.weightsShape(), {g.type()});
    finish(call.from, call.to);
    const Index neurons = call.shape.numInputs();
    for (Index group = 0; group < call.to.groups(); ++group) {
      const ListedRows rows(lists.source(group, neurons), lists.rows, neurons, call.threads);
      convolveToWeights(rows, {nullptr, 0}, call.shape, g.numbers(group), d_weights.numbers(group), call.threads);
    }
  });
}

ffi::Error rows(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results,
                ffi::Dictionary attributes) {
  return handle(pool, operands, results, attributes, [](Call& call) {
    const RowOperands spikes = call.takeRows();
    const Operand weights = call.from.take("weights", call.weightsShape(), {spikes.values.type()});
    const Result out = call.to.take("out", {spikes.rows, call.shape.numOutputs()}, {weights.type()});
    finish(call.from, call.to);
    for (Index group = 0; group < call.to.groups(); ++group) {
      convolve(spikes.listed(group, call.threads), spikes.inPlace(group), call.shape, weights.numbers(group),
               out.numbers(group), call.threads);
    }
  });
}

ffi::Error rowsBackward(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results,
                        ffi::Dictionary attributes) {
  return handle(pool, operands, results, attributes, [](Call& call) {
    const RowOperands spikes = call.takeRows();
    const Operand g = call.from.take("g", {spikes.rows, call.shape.numOutputs()}, {spikes.values.type()});
    const Result d_weights = call.to.take("d_weights", call.weightsShape(), {g.type()});
    finish(call.from, call.to);
    for (Index group = 0; group < call.to.groups(); ++group) {
      convolveToWeights(spikes.listed(group, call.threads), spikes.inPlace(group), call.shape, g.numbers(group),
                        d_weights.numbers(group), call.threads);
    }
  });
}

ffi::Error inputsBackward(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results,
                          ffi::Dictionary attributes) {
  return handle(pool, operands, results, attributes, [](Call& call) {
    const Operand weights = call.from.take("weights", call.weightsShape(), kFloating);
    const Index rows = call.from.nextLength(0);
    const Operand g = call.from.take("g", {rows, call.shape.numOutputs()}, {weights.type()});
    const Result d_inputs = call.to.take("d_inputs", {rows, call.shape.numInputs()}, {g.type()});
    finish(call.from, call.to);
    for (Index group = 0; group < call.to.groups(); ++group) {
      convolveToInputs(rows, call.shape, weights.numbers(group), g.numbers(group), d_inputs.numbers(group),
                       call.threads);
    }
  });
}

}  // namespace
}  // namespace snnjax

#define SNNJAX_SPIKE_CONV(target, function) \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(            \
      target, function, xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>().RemainingArgs().RemainingRets().Attrs())
SNNJAX_SPIKE_CONV(snnjax_spike_conv, snnjax::lists);
SNNJAX_SPIKE_CONV(snnjax_spike_conv_values_backward, snnjax::valuesBackward);
SNNJAX_SPIKE_CONV(snnjax_spike_conv_weights_backward, snnjax::weightsBackward);
SNNJAX_SPIKE_CONV(snnjax_spike_conv_rows, snnjax::rows);
SNNJAX_SPIKE_CONV(snnjax_spike_conv_rows_backward, snnjax::rowsBackward);
SNNJAX_SPIKE_CONV(snnjax_spike_conv_inputs_backward, snnjax::inputsBackward);
