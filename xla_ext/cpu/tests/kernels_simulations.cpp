// Steps of neurons with synapses, and Poisson input, of every instruction set of this machine, compared with plain
// loops.
#include "kernel_checks.hpp"

namespace {

using namespace kernel_checks;

// The exponential function errs by 1e-7, of a difference of up to 8.
constexpr double kConductanceTolerance = 1e-5;
constexpr Index kLongestVector = 16;
constexpr std::uint32_t kWordOfFive = 0x0a7d68db;

// One number for each neuron, or one for all, as often as a vector is long.
struct Constant {
  Floats numbers;
  bool is_shared;

  Constant(Random& random, Index size, bool shares, float scale = 1.0F)
      : numbers(random.eighths(size + kLongestVector)), is_shared(shares) {
    const float all = numbers.front();
    for (float& x : numbers) x = scale * (shares ? all : x);
  }

  NeuronConstant<float> get() const { return {numbers.data(), is_shared}; }
  float at(Index n) const { return numbers[is_shared ? 0 : sizeOf(n)]; }
};

struct Neurons {
  Index receptors;
  bool has_conductances;
  Constant leak, threshold, reset, refractory, currents;
  std::vector<Constant> decay, effect;
  Floats v, remaining, received, arriving;

  Neurons(const Case& of, Random& random, Index count, bool shares, bool conductances)
      : receptors(count),
        has_conductances(conductances),
        leak(random, of.size, shares),
        threshold(random, of.size, shares, 0.5F),
        reset(random, of.size, shares),
        refractory(random, of.size, shares, 8.0F),
        currents(random, of.size, shares),
        v(random.eighths(of.size)),
        remaining(random.eighths(of.size)),
        received(random.eighths(count * of.size)),
        arriving(random.eighths(count * of.size)) {
    for (Index r = 0; r < count; ++r) {
      decay.emplace_back(random, of.size, shares);
      effect.emplace_back(random, of.size, shares);
    }
    for (float& x : remaining) x = x > 0.0F ? 8.0F * x : 0.0F;
    if (!conductances) return;
    for (float& x : leak.numbers) x = -std::abs(x);
    for (Floats* numbers : {&received, &arriving}) {
      for (float& x : *numbers) x = std::abs(x);
    }
  }

  // A plain loop.
  std::vector<std::uint32_t> step(bool has_currents) {
    std::vector<std::uint32_t> spikes;
    const auto size = static_cast<Index>(v.size());
    for (Index n = 0; n < size; ++n) {
      float pull = has_currents ? currents.at(n) : 0.0F, total = 1.0F;
      if (!has_conductances) pull += leak.at(n) * v[sizeOf(n)];
      for (Index r = 0; r < receptors; ++r) {
        float& g = received[sizeOf(r * size + n)];
        float& arrived = arriving[sizeOf(r * size + n)];
        g += arrived;
        arrived = 0.0F;
        pull += effect[sizeOf(r)].at(n) * g;
        total += g;
        g *= decay[sizeOf(r)].at(n);
      }
      float after = pull;
      if (has_conductances) {
        const float target = pull / total;
        after = target + (v[sizeOf(n)] - target) * std::exp(leak.at(n) * total);
      }
      float& left = remaining[sizeOf(n)];
      if (left > 0.0F) {
        left -= 1.0F;
        continue;
      }
      v[sizeOf(n)] = after;
      if (!(after > threshold.at(n))) continue;
      v[sizeOf(n)] = reset.at(n);
      left = refractory.at(n);
      spikes.push_back(static_cast<std::uint32_t>(n));
    }
    return spikes;
  }

  std::vector<std::uint32_t> step(const Kernels& kernels, bool has_currents) {
    std::vector<NeuronConstant<float>> decays, effects;
    for (Index r = 0; r < receptors; ++r) {
      decays.push_back(decay[sizeOf(r)].get());
      effects.push_back(effect[sizeOf(r)].get());
    }
    const auto size = static_cast<Index>(v.size());
    const SynapticStep given{.first = 0,
                             .end = size,
                             .stride = size,
                             .receptors = receptors,
                             .has_conductances = has_conductances,
                             .leak = leak.get(),
                             .threshold = threshold.get(),
                             .reset = reset.get(),
                             .refractory = refractory.get(),
                             .synaptic_decay = decays.data(),
                             .effect = effects.data(),
                             .currents = has_currents ? currents.get() : NeuronConstant<float>{nullptr, true},
                             .v = v.data(),
                             .remaining = remaining.data(),
                             .received = received.data(),
                             .arriving = arriving.data()};
    std::vector<std::uint32_t> spikes(v.size());
    spikes.resize(sizeOf(kernels.stepSynaptic(given, spikes.data())));
    return spikes;
  }
};

void neuronsStepAsTheirEquation(const Case& of, Random& random) {
  for (Index receptors = 1; receptors <= kMostReceptors; ++receptors) {
    for (const bool shares : {false, true}) {
      for (const bool has_currents : {false, true}) {
        Neurons want(of, random, receptors, shares, false), got = want;
        expectSame(of, got.step(of.kernels, has_currents), want.step(has_currents));
        expectSame(of, got.v, want.v);
        expectSame(of, got.remaining, want.remaining);
        expectSame(of, got.received, want.received);
        expectSame(of, got.arriving, want.arriving);
      }
    }
  }
}

void conductancesStepAsTheirEquation(const Case& of, Random& random) {
  for (const bool shares : {false, true}) {
    Neurons want(of, random, 2, shares, true);
    for (float& x : want.threshold.numbers) x = 100.0F;  // a spike would hide the membrane
    Neurons got = want;
    expectSame(of, got.step(of.kernels, true), want.step(true));
    expectNear(of, got.v, want.v, kConductanceTolerance);
    expectSame(of, got.received, want.received);
  }
}

// The hash of neuron 5 and keys of 0 is that of 5 * 0x9e3779b9, computed in Python by the published triple32.
void randomWordsAreThoseOfTheirHash(const Case& of, Random&) {
  const auto exceeds = [&](std::uint32_t limit) {
    std::vector<std::int32_t> limits(1 + kLongestVector, static_cast<std::int32_t>(limit ^ 0x80000000U));
    const NeuronConstant<std::int32_t> row{limits.data(), true};
    const Floats weights(1 + kLongestVector, 0.5F);
    Floats arriving{1.0F, 2.0F, 3.0F};
    of.kernels.addPoisson({.random = {.key = {0, 0}, .first = 2, .end = 3, .number = 1, .blocks = 2},
                           .levels = 1,
                           .limits = &row,
                           .weights = {weights.data(), true},
                           .arriving = arriving.data()});
    return arriving;
  };
  expectSame(of, exceeds(kWordOfFive - 1), {1.0F, 2.0F, 3.5F});
  expectSame(of, exceeds(kWordOfFive), {1.0F, 2.0F, 3.0F});
  Floats currents{1.0F, 2.0F, 3.0F};  // 17 of the word's bits are 1
  const Floats scale(1 + kLongestVector, 0.5F);
  of.kernels.addNoise({.random = {.key = {0, 0}, .first = 2, .end = 3, .number = 1, .blocks = 2},
                       .scale = {scale.data(), true},
                       .currents = currents.data()});
  expectSame(of, currents, {1.0F, 2.0F, 3.5F});
}

// How many limits a word exceeds: the instruction sets agree about every neuron.
void countsAreThoseOfEverySet(const Case& of, Random& random) {
  std::vector<std::int32_t> limits[3];
  std::vector<NeuronConstant<std::int32_t>> rows;
  for (std::int32_t level = 0; level < 3; ++level) {
    limits[level].assign(sizeOf(of.size + kLongestVector), (level - 1) * 1'000'000'000);
    rows.push_back({limits[level].data(), level % 2 == 0});
  }
  const Constant weights(random, of.size, false);
  const Floats before = random.eighths(of.size);
  const auto added = [&](const Kernels& kernels) {
    Floats arriving = before;
    kernels.addPoisson({.random = {.key = {1, 2}, .first = 0, .end = of.size, .number = 0, .blocks = 1},
                        .levels = 3,
                        .limits = rows.data(),
                        .weights = weights.get(),
                        .arriving = arriving.data()});
    kernels.addNoise({.random = {.key = {1, 2}, .first = 0, .end = of.size, .number = 0, .blocks = 1},
                      .scale = weights.get(),
                      .currents = arriving.data()});
    return arriving;
  };
  expectSame(of, added(of.kernels), added(*kernelsOfMachine().front()));
}

}  // namespace

int main() {
  forEachSet(neuronsStepAsTheirEquation);
  forEachSet(conductancesStepAsTheirEquation);
  forEachSet(randomWordsAreThoseOfTheirHash, {1});
  forEachSet(countsAreThoseOfEverySet);
  return check::failures;
}
