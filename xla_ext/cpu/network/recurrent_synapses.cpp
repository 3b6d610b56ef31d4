#include "recurrent_synapses.hpp"

#include <algorithm>

#include "cpu/products/products.hpp"

namespace snnjax {

CollectingSynapses::CollectingSynapses(const RecurrentSynapses& of, const float* gain)
    : neurons_(of.all.neurons), targets_(of.all.count), weights_(of.all.count) {
  const auto nowhere = static_cast<std::uint32_t>(roundUp(neurons_, kernels().lanes));
  of.weights.numbers().read(0, of.all.count, weights_.data());
  for (Index s = 0; s < of.all.count; ++s) {
    const Index target = of.all.target(s);
    const bool is_inside = target < of.all.outputs;
    targets_[s] = is_inside ? static_cast<std::uint32_t>(target) : nowhere;
    weights_[s] = is_inside ? weights_[s] * gain[target] : 0.0F;
  }
  for (Index i = 0; i < neurons_; ++i) {
    const Index first = of.all.first(i), count = std::max<Index>(of.all.end(i) - first, 0);
    rows_.push_back({targets_.data() + first, weights_.data() + first, static_cast<std::uint32_t>(count), false});
  }
}

void CollectingSynapses::collect(Rows<const float> g, Index rows, Rows<float> out, Scratch& scratch) const {
  const Index lanes = roundUp(rows, kernels().lanes), width = roundUp(neurons_, kernels().lanes);
  scratch.received.resize(static_cast<std::size_t>((width + 1) * lanes));
  scratch.collected.resize(static_cast<std::size_t>(width * lanes));
  float *const received = scratch.received.data(), *const collected = scratch.collected.data();
  std::fill_n(received + width * lanes, lanes, 0.0F);
  kernels().transpose(g, rows, width, {received, lanes});
  kernels().sumRows(rows_.data(), neurons_, {received, lanes}, lanes, {nullptr, 0}, {collected, lanes});
  kernels().transpose({collected, lanes}, width, rows, out);
}

void computeSynapseGradient(const SynapseGradient& of, const Threads& threads) {
  const Synapses& synapses = of.of.all;
  const ListedRows sent(of.sent, of.rows, synapses.neurons, threads);
  Buffer<float> sums(synapses.count);
  correlate(sent, synapses, of.g_v, {sums.data(), false}, threads);
  Buffer<float> weights(of.sum_gain == nullptr ? 0 : synapses.count);
  if (of.sum_gain != nullptr) of.of.weights.numbers().read(0, synapses.count, weights.data());
  for (Index s = 0; s < synapses.count; ++s) {
    const Index target = synapses.target(s);
    if (target >= synapses.outputs) continue;
    if (of.sum_gain != nullptr) of.sum_gain[target] += double{weights[s]} * double{sums[s]};
    sums[s] *= of.gain[target];
  }
  if (of.g_weights) of.g_weights.write(0, synapses.count, sums.data());
}

}  // namespace snnjax
