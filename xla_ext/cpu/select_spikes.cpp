// The targets of `select_spikes`: from membranes to lists of spikes, and the surrogate gradient back.
#include "operand_rows.hpp"
#include "selection.hpp"
#include "spike_lists.hpp"

namespace snnjax {
namespace {

using Scratch = std::vector<float>;

Scratch scratchFor(Index count) { return Scratch(static_cast<std::size_t>(count)); }

struct Forward {
  Index rows, neurons, capacity;
  OperandRows v, threshold, second_threshold;
  Array ids, values, num_spikes, num_listed;

  Forward(Arrays& operands, Arrays& results)
      : rows(operands.nextLength(0)), neurons(operands.nextLength(1)), capacity(results.nextLength(1)) {
    v = OperandRows::take(operands, "v", rows, neurons, kFloating);
    threshold = OperandRows::take(operands, "threshold", rows, neurons, kFloating);
    second_threshold = OperandRows::take(operands, "second_threshold", rows, neurons, kFloating);
    ids = results.take("ids", {rows, capacity}, {idType(neurons)});
    values = results.take("values", {rows, capacity}, kFloating);
    num_spikes = results.take("num_spikes", {rows}, {ffi::S32});
    num_listed = results.take("num_listed", {rows}, {ffi::S32});
  }

  void run(Index group, Index first, Index behind) const {
    const Index words = (neurons + 63) / 64;
    Selection selection(capacity, words);
    std::vector<std::uint64_t> spikes(static_cast<std::size_t>(words)), near(spikes.size());
    Scratch own_v = scratchFor(neurons), own_threshold = own_v, own_second = own_v;
    for (Index row = first; row < behind; ++row) {
      const float* membranes = v.read(group, row, 0, neurons, own_v.data());
      const float* upper = threshold.read(group, row, 0, neurons, own_threshold.data());
      const float* lower = second_threshold.read(group, row, 0, neurons, own_second.data());
      std::fill(spikes.begin(), spikes.end(), 0);
      std::fill(near.begin(), near.end(), 0);
      for (Index i = 0; i < neurons; ++i) {
        const bool fires = membranes[i] > upper[i], nearly = !fires && membranes[i] > lower[i];
        spikes[static_cast<std::size_t>(i / 64)] |= std::uint64_t{fires} << (i % 64);
        near[static_cast<std::size_t>(i / 64)] |= std::uint64_t{nearly} << (i % 64);
      }
      num_spikes.at<std::int32_t>(group)[row] = static_cast<std::int32_t>(selection.count(spikes.data()));
      selection.cut(spikes.data(), near.data(), [&](Index id) { return membranes[id]; });
      const Index listed = writeList(spikes.data(), near.data(), neurons, capacity, row,
                                     {ids.at(group), neurons}, values.numbers(group));
      num_listed.at<std::int32_t>(group)[row] = static_cast<std::int32_t>(listed);
    }
  }
};

ffi::Error selectSpikes(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results) {
  return guarded("select_spikes", [&] {
    static_cast<void>(pool);
    Arrays from("select_spikes", operands), to("select_spikes", results);
    const Forward forward(from, to);
    for (Index group = 0; group < to.groups(); ++group) forward.run(group, 0, forward.rows);
  });
}

ffi::Error selectSpikesBackward(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results,
                                std::int64_t surrogate, float slope) {
  return guarded("select_spikes", [&] {
    static_cast<void>(pool), static_cast<void>(operands), static_cast<void>(results), static_cast<void>(surrogate),
        static_cast<void>(slope);
  });
}

}  // namespace
}  // namespace snnjax

XLA_FFI_DEFINE_HANDLER_SYMBOL(snnjax_select_spikes, snnjax::selectSpikes,
                              xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>().RemainingArgs().RemainingRets());
XLA_FFI_DEFINE_HANDLER_SYMBOL(snnjax_select_spikes_backward, snnjax::selectSpikesBackward,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .RemainingArgs()
                                  .RemainingRets()
                                  .Attr<std::int64_t>("surrogate")
                                  .Attr<float>("slope"));
