#include "plasticity.hpp"

namespace snnjax {

SpikeTimingPlasticity::SpikeTimingPlasticity(const Synapses& synapses, const bool* plastic, const Rule& rule,
                                             float* weights, float* before, float* after)
    : synapses_(synapses),
      plastic_(plastic),
      rule_(rule),
      weights_(weights),
      before_(before),
      after_(after),
      incoming_(synapses, synapses.neurons,
                [this](Index synapse, Index target) {
                  return changes(synapse) ? target % synapses_.neurons : IncomingSynapses::kNone;
                }),
      fires_(static_cast<std::size_t>(synapses.neurons)) {}

void SpikeTimingPlasticity::step(const std::uint32_t* spikes, Index count) {
  for (Index i = 0; i < synapses_.neurons; ++i) before_[i] *= rule_.decay[0];
  for (Index j = 0; j < synapses_.neurons; ++j) after_[j] *= rule_.decay[1];
  for (Index k = 0; k < count; ++k) fires_[spikes[k]] = true;
  for (Index k = 0; k < count; ++k) weaken(spikes[k]);
  for (Index k = 0; k < count; ++k) strengthen(spikes[k]);
  for (Index k = 0; k < count; ++k) fires_[spikes[k]] = false;
  for (Index k = 0; k < count; ++k) ++before_[spikes[k]], ++after_[spikes[k]];
}

// The synapses of a neuron that sends; those to a neuron that spikes as well change once, by both.
void SpikeTimingPlasticity::weaken(std::uint32_t sender) {
  const float stronger = rule_.rates[0] * before_[sender];
  for (Index s = synapses_.first(sender); s < synapses_.end(sender); ++s) {
    Index receiver = synapses_.target(s);
    if (receiver >= synapses_.outputs || !changes(s)) continue;
    while (receiver >= synapses_.neurons) receiver -= synapses_.neurons;  // of a few receptors: faster than a division
    const bool fires = fires_[static_cast<std::size_t>(receiver)];
    change(s, (fires ? stronger : 0.0F) - rule_.rates[1] * after_[receiver]);
  }
}

void SpikeTimingPlasticity::strengthen(std::uint32_t receiver) {
  for (const auto* entry = incoming_.begin(receiver); entry != incoming_.end(receiver); ++entry) {
    if (!fires_[entry->sender]) change(entry->synapse, rule_.rates[0] * before_[entry->sender]);
  }
}

// A weight that is not a number stays one.
void SpikeTimingPlasticity::change(Index synapse, float by) {
  const auto [least, most] = rule_.bounds;
  float weight = weights_[synapse] + by;
  if (weight < least) weight = least;
  if (weight > most) weight = most;
  weights_[synapse] = weight;
}

const float* ShortTermPlasticity::release(const std::uint32_t* spikes, Index count) {
  released_.resize(static_cast<std::size_t>(count));
  for (Index k = 0; k < count; ++k) released_[static_cast<std::size_t>(k)] = raised(spikes[k]) * available_[spikes[k]];
  return released_.data();
}

void ShortTermPlasticity::step(const std::uint32_t* spikes, Index count) {
  for (Index k = 0; k < count; ++k) {
    const Index i = spikes[k];
    const float now = raised(i);
    available_[i] -= now * available_[i];
    used_[i] = now;
  }
  const auto neurons = static_cast<Index>(rule_.use.size());
  const float *const recovery = rule_.recovery.data(), *const facilitation = rule_.facilitation.data();
  for (Index i = 0; i < neurons; ++i) {
    used_[i] *= facilitation[i];
    available_[i] = 1.0F - recovery[i] * (1.0F - available_[i]);
  }
}

}  // namespace snnjax
