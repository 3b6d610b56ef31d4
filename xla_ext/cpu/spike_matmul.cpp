// The targets of `spike_matmul`: the product of spike lists with weights and its two backward passes, and the same for
// rows of spikes, where only the weights' backward pass profits from sparsity.
#include "list_products.hpp"
#include "spike_operands.hpp"

namespace snnjax {
namespace {

// The weights of a forward pass, [neurons, outputs] of the dtype of the spikes' values, or int8 with a scale of it.
struct WeightOperands {
  Index neurons, outputs;
  Operand weights, scale;

  WeightOperands(Operands& from, Index of_neurons, ffi::DataType type)
      : neurons(of_neurons), outputs(from.nextLength(1)) {
    const bool are_int8 = from.nextIs(ffi::S8);
    weights = from.take("weights", {neurons, outputs}, {are_int8 ? ffi::S8 : type});
    if (are_int8) scale = from.take("scale", {outputs}, {type});
  }

  Weights of(Index group) const { return {weights.numbers(group), neurons, outputs, scale.numbers(group)}; }
};

ffi::Error spikeMatmul(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results) {
  return guarded("spike_matmul", [&] {
    Operands from("spike_matmul", operands);
    Results to("spike_matmul", results);
    ListOperands lists;
    lists.takeIds(from);
    lists.takeValues(from);
    const WeightOperands weights(from, from.nextLength(0), lists.values.type());
    const Result out = to.take("out", {lists.rows, weights.outputs}, {lists.values.type()});
    finish(from, to);
    const Threads threads = threadsOf(pool);
    for (Index group = 0; group < to.groups(); ++group) {
      const ListedRows rows(lists.source(group, weights.neurons), lists.rows, weights.neurons, threads);
      multiplyLists(rows, weights.of(group), out.numbers(group), threads);
    }
  });
}

ffi::Error valuesBackward(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results) {
  return guarded("spike_matmul", [&] {
    Operands from("spike_matmul", operands);
    Results to("spike_matmul", results);
    ListOperands lists;
    lists.takeIds(from);
    const Index neurons = from.nextLength(0), outputs = from.nextLength(1);
    const Operand weights = from.take("weights", {neurons, outputs}, kFloating);
    const Operand g = from.take("g", {lists.rows, outputs}, {weights.type()});
    const Result d_values = to.take("d_values", {lists.rows, lists.capacity}, {weights.type()});
    finish(from, to);
    const Threads threads = threadsOf(pool);
    for (Index group = 0; group < to.groups(); ++group) {
      const ListedRows rows(lists.source(group, neurons), lists.rows, threads);
      dotLists(rows, lists.capacity, {weights.numbers(group), neurons, outputs}, g.numbers(group),
               d_values.numbers(group), threads);
    }
  });
}

ffi::Error weightsBackward(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results) {
  return guarded("spike_matmul", [&] {
    Operands from("spike_matmul", operands);
    Results to("spike_matmul", results);
    ListOperands lists;
    lists.takeIds(from);
    lists.takeValues(from);
    const Index outputs = from.nextLength(1), neurons = to.nextLength(0);
    const Operand g = from.take("g", {lists.rows, outputs}, {lists.values.type()});
    const Result d_weights = to.take("d_weights", {neurons, outputs}, {g.type()});
    finish(from, to);
    const Threads threads = threadsOf(pool);
    for (Index group = 0; group < to.groups(); ++group) {
      const ListedRows rows(lists.source(group, neurons), lists.rows, neurons, threads);
      multiplyLists(rows.transposed(), {g.numbers(group), lists.rows, outputs}, d_weights.numbers(group), threads);
    }
  });
}

ffi::Error rowsProduct(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results) {
  return guarded("spike_matmul", [&] {
    Operands from("spike_matmul", operands);
    Results to("spike_matmul", results);
    const RowOperands spikes(from);
    const WeightOperands weights(from, spikes.neurons, spikes.values.type());
    const Result out = to.take("out", {spikes.rows, weights.outputs}, {spikes.values.type()});
    finish(from, to);
    const Threads threads = threadsOf(pool);
    for (Index group = 0; group < to.groups(); ++group) {
      multiplyLists(spikes.listed(group, threads), weights.of(group), out.numbers(group), threads);
    }
  });
}

ffi::Error rowsBackward(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results) {
  return guarded("spike_matmul", [&] {
    Operands from("spike_matmul", operands);
    Results to("spike_matmul", results);
    const RowOperands spikes(from);
    const Index outputs = from.nextLength(1);
    const Operand g = from.take("g", {spikes.rows, outputs}, {spikes.values.type()});
    const Result d_weights = to.take("d_weights", {spikes.neurons, outputs}, {g.type()});
    finish(from, to);
    const Threads threads = threadsOf(pool);
    for (Index group = 0; group < to.groups(); ++group) {
      multiplyLists(spikes.listed(group, threads).transposed(), {g.numbers(group), spikes.rows, outputs},
                    d_weights.numbers(group), threads);
    }
  });
}

}  // namespace
}  // namespace snnjax

XLA_FFI_DEFINE_HANDLER_SYMBOL(snnjax_spike_matmul, snnjax::spikeMatmul,
                              xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>().RemainingArgs().RemainingRets());
XLA_FFI_DEFINE_HANDLER_SYMBOL(snnjax_spike_matmul_values_backward, snnjax::valuesBackward,
                              xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>().RemainingArgs().RemainingRets());
XLA_FFI_DEFINE_HANDLER_SYMBOL(snnjax_spike_matmul_weights_backward, snnjax::weightsBackward,
                              xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>().RemainingArgs().RemainingRets());
XLA_FFI_DEFINE_HANDLER_SYMBOL(snnjax_spike_matmul_rows, snnjax::rowsProduct,
                              xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>().RemainingArgs().RemainingRets());
XLA_FFI_DEFINE_HANDLER_SYMBOL(snnjax_spike_matmul_rows_backward, snnjax::rowsBackward,
                              xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>().RemainingArgs().RemainingRets());
