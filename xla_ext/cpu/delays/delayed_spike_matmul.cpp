// The targets of `delayed_spike_matmul`: all steps of spikes, in lists or in rows, through synapses with a delay each,
// and the backward passes to spikes, and to weights and delays.
#include <algorithm>
#include <string>
#include <vector>

#include "cpu/lists/marks.hpp"
#include "cpu/lists/spike_operands.hpp"
#include "delayed_pairs.hpp"
#include "delayed_synapses.hpp"

namespace snnjax::delayed_spike_matmul {
namespace {

using schema::Axis;

template <typename From>
DelayedSynapses synapsesOf(const From& from, const schema::Lengths& lengths, Index group) {
  return {.all = {.ends = from.ends.template at<std::int32_t>(group),
                  .targets = from.targets.at(group),
                  .targets_are_uint16 = from.targets.type() == ffi::U16,
                  .neurons = lengths[Axis::kNeurons],
                  .count = lengths[Axis::kSynapses],
                  .outputs = lengths[Axis::kOutputs]},
          .weights = from.weights.template at<float>(group),
          .delays = from.delays.template at<float>(group),
          .steps = lengths[Axis::kSteps],
          .batch = lengths[Axis::kBatch],
          .longest = lengths[Axis::kArrivals]};
}

template <typename T, typename Array>
Arriving<T> arriving(const Received<Array>& of, Index group) {
  return {of.currents.template at<float>(group), of.left.template at<float>(group)};
}

void requireWholeBytes(const schema::Lengths& lengths) {
  const Index bytes = (lengths[Axis::kNeurons] + 7) / 8;
  if (lengths[Axis::kNeuronBytes] == bytes) return;
  Attributes::refusal("delayed_spike_matmul")("record.marks", "have " + std::to_string(bytes) + " bytes a row",
                                              std::to_string(lengths[Axis::kNeuronBytes]));
}

void write(const Record<Result>& record, const ListedRows& sent, Index group, const Threads& threads) {
  auto* const marks = record.marks.at<std::uint8_t>(group);
  auto* const is_binary = record.is_binary.at<std::uint8_t>(group);
  Bits bits = Bits::over(marks, sent.rows(), sent.width());
  threads.run(record.marks.length(0), [&](Index step, Index) {
    const Index batch = record.marks.length(1);
    std::vector<std::uint8_t> scratch(static_cast<std::size_t>(bits.words() * 64));
    for (Index place = step * batch; place < (step + 1) * batch; ++place) {
      const SpikeRow row = sent.row(place);
      kernels().markIds(row.ids, row.count, bits.words(), scratch.data(), bits.row(place));
      is_binary[place] = row.values == nullptr ||
                         std::all_of(row.values, row.values + row.count, [](float value) { return value == 1.0F; });
    }
  });
  bits.writeTo(marks, sent.rows(), sent.width());
}

void forward(Call<Operands<Operand>, Results<Result>>& call) {
  const schema::Lengths lengths = call.check();
  if (call.to.record.marks) requireWholeBytes(lengths);
  for (Index group = 0; group < call.groups(); ++group) {
    const DelayedSynapses synapses = synapsesOf(call.from, lengths, group);
    const auto send = arePairsOfShortDelays(synapses) ? sendPairs : sendDelayed;
    const Start start{call.from.pending.at<float>(group), call.from.bias.at<float>(group)};
    const ListedRows sent = spikesOf(call.from, synapses.sent(), lengths, group, call.threads);
    send(sent, synapses, start, arriving<float>(call.to.received, group), call.threads);
    if (call.to.record.marks.length(0) > 0) write(call.to.record, sent, group, call.threads);
  }
}

// What was written, from which the forward pass has listed.
ListedRows recordedFrom(const WeightsBackwardOperands<Operand>& from, const schema::Lengths& lengths,
                        const DelayedSynapses& synapses, Index group, const Threads& threads) {
  const Index rows = synapses.sent(), neurons = synapses.all.neurons;
  if (from.ids || from.record.marks.length(0) < synapses.steps) return spikesOf(from, rows, lengths, group, threads);
  const GivenBits bits(from.record.marks.at<std::uint8_t>(group), rows, neurons);
  const DenseSource dense = rowsOf(from.spikes, group, lengths);
  const auto* const is_binary = from.record.is_binary.at<std::uint8_t>(group);
  return {RecordedSource(dense, bits.row(0), is_binary, neurons), rows, neurons, threads};
}

void spikesBackward(Call<SpikesBackwardOperands<Operand>, SpikesBackwardResults<Result>>& call) {
  const schema::Lengths lengths = call.check();
  const auto& from = call.from;
  needSameForm("delayed_spike_matmul", from, call.to);
  for (Index group = 0; group < call.groups(); ++group) {
    const DelayedSynapses synapses = synapsesOf(from, lengths, group);
    const auto g = arriving<const float>(from.g, group);
    if (!from.ids) {
      collectDelayed(synapses, g, call.to.g_spikes.at<float>(group), call.threads);
      continue;
    }
    const ListedRows sent = slotsOf(from, synapses.sent(), lengths, group, call.threads);
    const auto collect = arePairsOfShortDelays(synapses) ? collectPairsToSlots : collectDelayedToSlots;
    collect(sent, lengths[Axis::kCapacity], synapses, g, call.to.g_values.at<float>(group), call.threads);
  }
}

void weightsBackward(Call<WeightsBackwardOperands<Operand>, WeightsBackwardResults<Result>>& call) {
  const schema::Lengths lengths = call.check();
  const auto& from = call.from;
  if (from.record.marks) requireWholeBytes(lengths);
  for (Index group = 0; group < call.groups(); ++group) {
    DelayedSynapses synapses = synapsesOf(from, lengths, group);
    float* const g_delays =
        call.to.g_delays.length(0) == synapses.all.count ? call.to.g_delays.at<float>(group) : nullptr;
    const auto correlate = arePairsOfShortDelays(synapses) ? correlatePairs : correlateDelayed;
    correlate(recordedFrom(from, lengths, synapses, group, call.threads), synapses,
              arriving<const float>(from.g, group), call.to.g_weights.at<float>(group), g_delays, call.threads);
  }
}

}  // namespace
}  // namespace snnjax::delayed_spike_matmul

SNNJAX_TARGET(snnjax_delayed_spike_matmul, "delayed_spike_matmul", snnjax::delayed_spike_matmul::forward);
SNNJAX_TARGET(snnjax_delayed_spike_matmul_spikes_backward, "delayed_spike_matmul",
              snnjax::delayed_spike_matmul::spikesBackward);
SNNJAX_TARGET(snnjax_delayed_spike_matmul_weights_backward, "delayed_spike_matmul",
              snnjax::delayed_spike_matmul::weightsBackward);
