// The targets of `spike_sparse_matmul`: spikes through the synapses that exist.
#include "cpu/synapses/synapses.hpp"
#include "product.hpp"

namespace snnjax::spike_sparse_matmul {
namespace {

using schema::Axis;

Synapses synapsesOf(const auto& from, const auto& of) {
  return {.ends = from.ends.template at<std::int32_t>(of.group),
          .targets = from.targets.at(of.group),
          .targets_are_uint16 = from.targets.type() == ffi::U16,
          .neurons = of.neurons(),
          .count = of[Axis::kSynapses],
          .outputs = of.outputs()};
}

// Floating weights, or int8 ones with a scale.
SynapseWeights weightsOf(const schema::Sparse<Operand>& weights, const auto& of) {
  const Operand& stored = weights.values ? weights.values : weights.array;
  return {of.numbers(stored), of.numbers(weights.scale), of.outputs()};
}

void forward(Call<Operands<Operand>, Results<Result>>& call) {
  forEachGroup(call, [&](const auto& of) {
    send(of.spikes(), synapsesOf(call.from, of), weightsOf(call.from.weights, of), of.numbers(call.to.out),
         call.threads);
  });
}

void spikesBackward(Call<SpikesBackwardOperands<Operand>, SpikesBackwardResults<Result>>& call) {
  const auto& from = call.from;
  const auto& to = call.to;
  needSameForm("spike_sparse_matmul", from, to);
  forEachGroup(call, [&](const auto& of) {
    const Synapses synapses = synapsesOf(from, of);
    const Numbers weights = of.numbers(from.weights), g = of.numbers(from.g);
    if (from.ids) {
      collectToSlots(of.slots(), of[Axis::kCapacity], synapses, weights, g, of.numbers(to.g_values), call.threads);
    } else {
      collect(of.rows(), synapses, weights, g, of.numbers(to.g_spikes), call.threads);
    }
  });
}

void weightsBackward(Call<WeightsBackwardOperands<Operand>, WeightsBackwardResults<Result>>& call) {
  std::vector<float> copy;
  forEachGroup(call, [&](const auto& of) {
    const Numbers g = of.numbers(call.from.g);
    if (g.is_bfloat16) {
      const Index count = of.rows() * of.outputs();
      copy.resize(static_cast<std::size_t>(count));
      g.read(0, count, copy.data());
    }
    correlate(of.spikes(), synapsesOf(call.from, of), {g.is_bfloat16 ? copy.data() : g.float32(), of.outputs()},
              of.numbers(call.to.g_weights), call.threads);
  });
}

}  // namespace
}  // namespace snnjax::spike_sparse_matmul

SNNJAX_PRODUCT(spike_sparse_matmul);
