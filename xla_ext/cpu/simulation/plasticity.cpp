#include "plasticity.hpp"

#include <cmath>

namespace snnjax {

Modulation::Modulation(const float* values, Index stride, Index steps, double keep)
    : values_(values),
      stride_(stride),
      ahead_(static_cast<std::size_t>(steps + 1)),
      powers_(static_cast<std::size_t>(steps + 1), 1.0),
      ends_(static_cast<std::size_t>(steps)) {
  for (std::size_t t = 1; t < powers_.size(); ++t) powers_[t] = keep * powers_[t - 1];
  Index end = steps - 1;
  for (Index t = steps - 1; t >= 0; --t) {
    const auto place = static_cast<std::size_t>(t);
    if (t + 1 < steps && std::signbit(at(t)) != std::signbit(at(t + 1))) end = t;
    ends_[place] = end;
    ahead_[place] = keep * (at(t) + ahead_[place + 1]);
  }
}

void Modulation::advance(float& weight, float& eligibility, Index from, Index to, Bounds bounds) const {
  while (from < to && eligibility != 0.0F) {
    const auto first = static_cast<std::size_t>(from + 1);  // weights move one way as long as the factor has its sign
    const Index end = std::min(to, ends_[first]);
    const double left = powers_[static_cast<std::size_t>(end - from)];
    const double added = ahead_[first] - left * ahead_[static_cast<std::size_t>(end + 1)];
    weight = bounds.clip(static_cast<float>(weight + eligibility * added));
    eligibility = static_cast<float>(eligibility * left);
    from = end;
  }
}

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
      change(step, s,
             (fires_[static_cast<std::size_t>(receiver)] ? stronger : 0.0F) - rule_.rates[1] * after_[receiver]);
    }
  }
  for (const std::uint32_t j : spikes) {
    for (Index k = starts_[j]; k < starts_[j + 1]; ++k) {
      const Entry entry = incoming_[static_cast<std::size_t>(k)];
      const Index then = step - entry.delay;
      if (sent_.at(then, entry.sender) == 0.0F) {
        change(step, entry.synapse, rule_.rates[0] * before_.at(then, entry.sender));
      }
    }
  }
  for (const std::uint32_t j : spikes) fires_[j] = false, ++after_[j];
}

void SpikeTimingPlasticity::change(Index step, Index synapse, float by) {
  const float factor = rule_.third != nullptr ? rule_.third->at(step) : 1.0F;
  if (rule_.eligibility != nullptr) {
    update(step - 1, synapse);
    by += rule_.keep * rule_.eligibility[synapse];
    rule_.eligibility[synapse] = by;
    rule_.known[synapse] = static_cast<std::int32_t>(step);
  }
  weights_[synapse] = rule_.bounds.clip(weights_[synapse] + factor * by);
}

void SpikeTimingPlasticity::update(Index step, Index synapse) {
  if (rule_.eligibility == nullptr || !changes(synapse) || rule_.known[synapse] >= step) return;
  rule_.third->advance(weights_[synapse], rule_.eligibility[synapse], rule_.known[synapse], step, rule_.bounds);
  rule_.known[synapse] = static_cast<std::int32_t>(step);
}

void SpikeTimingPlasticity::update(Index step, const std::vector<Segment>& arrived) {
  if (rule_.eligibility == nullptr) return;
  for (const Segment& segment : arrived) {
    for (Index s = segment.first; s < Index{segment.first} + segment.count; ++s) update(step, s);
  }
}

void SpikeTimingPlasticity::updateAll(Index step) {
  for (const Entry& entry : incoming_) update(step, entry.synapse);
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
