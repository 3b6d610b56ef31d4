#include "plasticity.hpp"

namespace snnjax {

SpikeTimingPlasticity::SpikeTimingPlasticity(const DelayedSynapses& synapses, Index block, Index targets,
                                             const bool* plastic, const Rule& rule, float* weights,
                                             const History& before, const History& sent, float* after)
    : synapses_(synapses),
      block_(block),
      stride_(before.stride),
      targets_(targets),
      plastic_(plastic),
      rule_(rule),
      weights_(weights),
      before_(before),
      sent_(sent),
      after_(after),
      starts_(static_cast<std::size_t>(stride_ + 2)),
      fires_(static_cast<std::size_t>(stride_)) {
  const auto each = [&](auto visit) {
    for (Index sender = 0; sender < synapses_.neurons; ++sender) {
      synapses_.each(block_, sender, [&](const Segment& segment) {
        if (segment.delay == 0 || segment.delay >= before_.slots) return;
        for (Index s = segment.first; s < Index{segment.first} + segment.count; ++s) {
          const Index place = synapses_.place(s);
          if (place < targets_ && changes(s)) visit(static_cast<std::size_t>(place % stride_), s, segment);
        }
      });
    }
  };
  // Between the starts one is left free until all are sorted.
  each([&](std::size_t receiver, Index, const Segment&) { ++starts_[receiver + 2]; });
  for (std::size_t k = 2; k < starts_.size(); ++k) starts_[k] += starts_[k - 1];
  incoming_.resize(static_cast<std::size_t>(starts_.back()));
  each([&](std::size_t receiver, Index s, const Segment& segment) {
    incoming_[static_cast<std::size_t>(starts_[receiver + 1]++)] = {segment.sender, static_cast<std::uint32_t>(s),
                                                                    segment.delay};
  });
}

void SpikeTimingPlasticity::step(Index step, const std::vector<Segment>& arrived,
                                 const std::vector<std::uint32_t>& spikes) {
  for (Index j = 0; j < stride_; ++j) after_[j] *= rule_.decay[1];
  for (const std::uint32_t j : spikes) fires_[j] = true;
  for (const Segment& segment : arrived) {  // those to a neuron that spikes as well change once, by both
    const float stronger = rule_.rates[0] * before_.at(step - segment.delay, segment.sender);
    for (Index s = segment.first; s < Index{segment.first} + segment.count; ++s) {
      const Index place = synapses_.place(s);
      if (place >= targets_ || !changes(s)) continue;
      const Index receiver = place % stride_;
      change(s, (fires_[static_cast<std::size_t>(receiver)] ? stronger : 0.0F) - rule_.rates[1] * after_[receiver]);
    }
  }
  for (const std::uint32_t j : spikes) {
    for (Index k = starts_[j]; k < starts_[j + 1]; ++k) {
      const Entry entry = incoming_[static_cast<std::size_t>(k)];
      const Index then = step - entry.delay;
      if (sent_.at(then, entry.sender) == 0.0F) {
        change(entry.synapse, rule_.rates[0] * before_.at(then, entry.sender));
      }
    }
  }
  for (const std::uint32_t j : spikes) fires_[j] = false, ++after_[j];
}

// A weight that is not a number stays one.
void SpikeTimingPlasticity::change(Index synapse, float by) {
  const auto [least, most] = rule_.bounds;
  float weight = weights_[synapse] + by;
  if (weight < least) weight = least;
  if (weight > most) weight = most;
  weights_[synapse] = weight;
}

void ShortTermPlasticity::release(const std::vector<std::uint32_t>& spikes, float* row) const {
  for (const std::uint32_t i : spikes) row[i] = raised(i) * available_[i];
}

void ShortTermPlasticity::step(const std::vector<std::uint32_t>& spikes) {
  for (const std::uint32_t i : spikes) {
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
