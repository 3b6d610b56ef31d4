// The targets of `spike_matmul`: the product of spike lists with weights, and its two backward passes.
#include "ffi.hpp"
#include "products.hpp"
#include "spike_rows.hpp"

namespace snnjax {
namespace {

// The lists of a call: ids and values [rows, capacity].
struct Lists {
  Array ids, values;
  Index rows = 0, capacity = 0;

  void takeIds(Arrays& operands) {
    rows = operands.nextLength(0);
    capacity = operands.nextLength(1);
    ids = operands.take("ids", {rows, capacity}, {ffi::U16, ffi::S32});
  }

  void takeValues(Arrays& operands) { values = operands.take("values", {rows, capacity}, kFloating); }

  ListSource source(Index group, Index neurons) const {
    return {ids.at(group), ids.type() == ffi::U16, values.numbers(group), capacity, neurons};
  }
};

ffi::Error spikeMatmul(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results) {
  return guarded("spike_matmul", [&] {
    Arrays from("spike_matmul", operands), to("spike_matmul", results);
    Lists lists;
    lists.takeIds(from);
    lists.takeValues(from);
    const Index neurons = from.nextLength(0), outputs = from.nextLength(1);
    const Array weights = from.take("weights", {neurons, outputs}, {lists.values.type()});
    const Array out = to.take("out", {lists.rows, outputs}, {weights.type()});
    const Threads threads = threadsOf(pool);
    for (Index group = 0; group < to.groups(); ++group) {
      const ListSource source = lists.source(group, neurons);
      const SpikeLists rows(source, lists.rows, neurons, std::max<Index>(lists.rows, 1), nullptr, threads);
      const Index lanes = kernels().lanes, padded = roundUp(outputs, lanes);
      PackedWeights packed;
      packed.resize(neurons, padded);
      packColumns({weights.numbers(group), neurons, outputs}, 0, outputs, packed);
      const Buffer<float> sums(lists.rows * padded);
      multiply(rows, 0, lists.rows, {packed.rows().data, padded}, padded, {nullptr, 0}, {sums.data(), padded});
      for (Index r = 0; r < lists.rows; ++r) {
        out.numbers(group).write(r * outputs, outputs, sums.data() + r * padded);
      }
    }
  });
}

ffi::Error valuesBackward(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results) {
  return guarded("spike_matmul", [&] {
    static_cast<void>(pool);
    Arrays from("spike_matmul", operands), to("spike_matmul", results);
    Lists lists;
    lists.takeIds(from);
    const Index neurons = from.nextLength(0), outputs = from.nextLength(1);
    const Array weights = from.take("weights", {neurons, outputs}, kFloating);
    const Array g = from.take("g", {lists.rows, outputs}, {weights.type()});
    const Array d_values = to.take("d_values", {lists.rows, lists.capacity}, {weights.type()});
    std::vector<float> row(static_cast<std::size_t>(outputs)), own_g(row.size());
    for (Index group = 0; group < to.groups(); ++group) {
      const ListSource source = lists.source(group, neurons);
      for (Index r = 0; r < lists.rows; ++r) {
        g.numbers(group).read(r * outputs, outputs, own_g.data());
        for (Index slot = 0; slot < lists.capacity; ++slot) {
          const Index id = source.idAt(r, slot);
          float sum = 0.0F;
          if (id >= 0) {
            weights.numbers(group).read(id * outputs, outputs, row.data());
            const std::uint32_t first = 0;
            kernels().dotRows(&first, 1, {row.data(), outputs}, outputs, own_g.data(), &sum);
          }
          d_values.numbers(group).write(r * lists.capacity + slot, 1, &sum);
        }
      }
    }
  });
}

ffi::Error weightsBackward(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results) {
  return guarded("spike_matmul", [&] {
    Arrays from("spike_matmul", operands), to("spike_matmul", results);
    Lists lists;
    lists.takeIds(from);
    lists.takeValues(from);
    const Index outputs = from.nextLength(1), neurons = to.nextLength(0);
    const Array g = from.take("g", {lists.rows, outputs}, {lists.values.type()});
    const Array d_weights = to.take("d_weights", {neurons, outputs}, {g.type()});
    const Threads threads = threadsOf(pool);
    for (Index group = 0; group < to.groups(); ++group) {
      const ListSource source = lists.source(group, neurons);
      const SpikeLists rows(source, lists.rows, neurons, std::max<Index>(lists.rows, 1), nullptr, threads);
      const Index padded = roundUp(outputs, kernels().lanes);
      PackedWeights packed_g, sums;
      packed_g.resize(lists.rows, padded);
      packColumns({g.numbers(group), lists.rows, outputs}, 0, outputs, packed_g);
      sums.resize(neurons, padded);
      sums.clear(neurons);
      accumulate(rows, 0, lists.rows, sums.rows(), padded, {packed_g.rows().data, padded});
      unpackColumns(sums, 0, outputs, {d_weights.numbers(group), neurons, outputs});
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
