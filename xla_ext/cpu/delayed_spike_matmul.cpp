// The targets of `delayed_spike_matmul`: all steps of spikes, in lists or in rows, through synapses with a delay each,
// and the backward passes to spikes, and to weights and delays.
#include "call.hpp"
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
Arriving<T> arriving(const Results<Array>& of, Index group) {
  return {of.currents.template at<float>(group), of.left.template at<float>(group)};
}

ListSource listsOf(const Operand& ids, const Operand& values, Index group, Index neurons) {
  return {ids.at(group), ids.type() == ffi::U16, values.numbers(group), ids.length(2), neurons};
}

// The spikes of each place.
template <typename From>
ListedRows sentFrom(const From& from, const DelayedSynapses& synapses, Index group, const Threads& threads) {
  const Index neurons = synapses.all.neurons;
  if (from.ids) return {listsOf(from.ids, from.values, group, neurons), synapses.sent(), neurons, threads};
  return {DenseSource(from.spikes.at(group), DenseSource::Type::kFloat32, neurons), synapses.sent(), neurons, threads};
}

void forward(Call<Operands<Operand>, Results<Result>>& call) {
  const schema::Lengths lengths = call.check();
  for (Index group = 0; group < call.groups(); ++group) {
    const DelayedSynapses synapses = synapsesOf(call.from, lengths, group);
    const auto send = arePairsOfShortDelays(synapses) ? sendPairs : sendDelayed;
    const Start start{call.from.pending.at<float>(group), call.from.bias.at<float>(group)};
    send(sentFrom(call.from, synapses, group, call.threads), synapses, start, arriving<float>(call.to, group),
         call.threads);
  }
}

void spikesBackward(Call<SpikesBackwardOperands<Operand>, SpikesBackwardResults<Result>>& call) {
  schema::Lengths lengths = call.check();
  const auto& from = call.from;
  if (static_cast<bool>(from.ids) != static_cast<bool>(call.to.g_values)) {
    Attributes::refusal("delayed_spike_matmul")("g_values", "be given for lists alone", "another form");
  }
  for (Index group = 0; group < call.groups(); ++group) {
    const DelayedSynapses synapses = synapsesOf(from, lengths, group);
    const auto g = arriving<const float>(from.g, group);
    if (!from.ids) {
      collectDelayed(synapses, g, call.to.g_spikes.at<float>(group), call.threads);
      continue;
    }
    const ListedRows sent(listsOf(from.ids, {}, group, synapses.all.neurons), synapses.sent(), call.threads);
    const auto collect = arePairsOfShortDelays(synapses) ? collectPairsToSlots : collectDelayedToSlots;
    collect(sent, lengths[Axis::kCapacity], synapses, g, call.to.g_values.at<float>(group), call.threads);
  }
}

void weightsBackward(Call<WeightsBackwardOperands<Operand>, WeightsBackwardResults<Result>>& call) {
  const schema::Lengths lengths = call.check();
  const auto& from = call.from;
  for (Index group = 0; group < call.groups(); ++group) {
    DelayedSynapses synapses = synapsesOf(from, lengths, group);
    float* const g_delays =
        call.to.g_delays.length(0) == synapses.all.count ? call.to.g_delays.at<float>(group) : nullptr;
    const auto correlate = arePairsOfShortDelays(synapses) ? correlatePairs : correlateDelayed;
    correlate(sentFrom(from, synapses, group, call.threads), synapses, arriving<const float>(from.g, group),
              call.to.g_weights.at<float>(group), g_delays, call.threads);
  }
}

}  // namespace
}  // namespace snnjax::delayed_spike_matmul

SNNJAX_TARGET(snnjax_delayed_spike_matmul, "delayed_spike_matmul", snnjax::delayed_spike_matmul::forward);
SNNJAX_TARGET(snnjax_delayed_spike_matmul_spikes_backward, "delayed_spike_matmul",
              snnjax::delayed_spike_matmul::spikesBackward);
SNNJAX_TARGET(snnjax_delayed_spike_matmul_weights_backward, "delayed_spike_matmul",
              snnjax::delayed_spike_matmul::weightsBackward);
