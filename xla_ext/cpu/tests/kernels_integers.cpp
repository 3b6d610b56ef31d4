// Neurons in the integers of a chip, of every instruction set of this machine, compared with plain loops.
#include <cstdlib>

#include "kernel_checks.hpp"

namespace {

using namespace kernel_checks;
using Ints = std::vector<std::int32_t>;

constexpr Index kSynapses = 2;

std::int32_t within(const IntegerArithmetic& chip, std::int32_t x) { return std::clamp(x, chip.low, chip.high); }

IntegerArithmetic randomChip(Random& random) {
  const auto yes = [&] { return random.happens(0.5); };
  const Index overflow = random.below(3);
  const bool each = overflow == 0 && yes();
  const auto bits = static_cast<std::int32_t>(1 + random.below(12));
  const std::int32_t top = 1 << (8 + random.below(16));
  return {.shifts = yes(),
          .to_zero = yes(),
          .at_least_one = yes(),
          .saturates = overflow == 0,
          .wraps = overflow == 1,
          .each_source = each,
          .input_first = each || yes(),
          .change_first = yes(),
          .bounded_last = yes(),
          .subtracts = yes(),
          .inclusive = yes(),
          .decay_bits = bits,
          .input_shift = static_cast<std::int32_t>(random.below(3)),
          .low = yes() ? -top : 1 - top,
          .high = top - 1,
          .max_spikes = yes() ? 31 : 1};
}

struct Layer {
  IntegerArithmetic chip;
  Index neurons, stride;
  Ints threshold, decay, bias, synapse_decay, arriving, v, current, counts;
  Floats spikes, record_v, record_current;

  Layer(const Case& of, Random& random)
      : chip(randomChip(random)),
        neurons(of.size),
        stride(roundUp(of.size, 16)),
        counts(sizeOf(stride)),
        spikes(sizeOf(neurons)),
        record_v(sizeOf(neurons)),
        record_current(sizeOf(kSynapses * neurons)) {
    const auto numbers = [&](Index rows, std::int32_t least, std::int32_t most, std::int32_t rest = 0) {
      Ints made(sizeOf(rows * stride), rest);
      for (Index row = 0; row < rows; ++row) {
        for (Index n = 0; n < neurons; ++n) {
          made[sizeOf(row * stride + n)] = least + static_cast<std::int32_t>(random.below(most - least + 1));
        }
      }
      return made;
    };
    const std::int32_t most_decay = chip.shifts ? 31 : 1 << chip.decay_bits;
    threshold = numbers(1, 1, chip.high / 4 + 1, INT32_MAX);
    decay = numbers(1, 0, most_decay);
    synapse_decay = numbers(kSynapses, 0, most_decay);
    bias = numbers(1, chip.low / 16, chip.high / 16);
    arriving = numbers(kSynapses, chip.low / 4, chip.high / 4);
    v = numbers(1, chip.low, chip.high);
    current = numbers(kSynapses, chip.low, chip.high);
  }

  bool run(const Kernels& kernels) {
    return kernels.stepIntegers({chip,
                                 neurons,
                                 kSynapses,
                                 stride,
                                 threshold.data(),
                                 decay.data(),
                                 bias.data(),
                                 synapse_decay.data(),
                                 arriving.data(),
                                 v.data(),
                                 current.data(),
                                 counts.data(),
                                 spikes.data(),
                                 record_v.data(),
                                 {record_current.data(), neurons}});
  }

  std::int64_t decayed(std::int64_t x, std::int32_t by) const {
    const std::int64_t size = chip.to_zero ? std::abs(x) : x, sign = chip.to_zero && x < 0 ? -1 : 1;
    if (!chip.shifts) return sign * ((size * by) >> chip.decay_bits);
    const std::int64_t lost = sign * (size >> by);
    return x - (chip.at_least_one && x > 0 && lost == 0 ? 1 : lost);
  }

  std::int64_t overflowed(std::int64_t x) const {
    const std::int64_t top = std::int64_t{chip.high} + 1;
    if (chip.saturates) return std::clamp<std::int64_t>(x, chip.low, chip.high);
    if (!chip.wraps) return x;
    if (chip.low == -top) return ((x + top) & (2 * top - 1)) - top;
    return x > top ? x - 2 * top : x <= -top ? x + 2 * top : x;
  }

  // A plain loop.
  bool step() {
    bool has_fired = false;
    for (Index n = 0; n < neurons; ++n) {
      const std::size_t i = sizeOf(n);
      std::int64_t total = 0;
      for (Index k = 0; k < kSynapses; ++k) {
        const std::size_t place = sizeOf(k * stride + n);
        const std::int64_t arrived = std::int64_t{arriving[place]} << chip.input_shift;
        std::int64_t x = current[place];
        if (chip.each_source) {
          x = decayed(x, synapse_decay[place]);
        } else {
          arriving[place] = 0;
          x = chip.input_first ? decayed(overflowed(x + arrived), synapse_decay[place])
                               : overflowed(decayed(x, synapse_decay[place]) + arrived);
        }
        current[place] = static_cast<std::int32_t>(x);
        record_current[sizeOf(k * neurons + n)] = static_cast<float>(x);
        total += x;
      }
      has_fired = fire(i, membrane(i, static_cast<std::int32_t>(total))) || has_fired;
    }
    return has_fired;
  }

  std::int32_t membrane(std::size_t i, std::int32_t total) const {
    const auto kept = static_cast<std::int32_t>(decayed(v[i], decay[i]));
    if (chip.change_first) {
      const std::int32_t leak = v[i] - kept == chip.low ? chip.low : kept - v[i];
      return within(chip, v[i] + within(chip, within(chip, total + leak) + bias[i]));
    }
    const std::int32_t sum = kept + total + bias[i];
    return chip.bounded_last ? sum : within(chip, sum);
  }

  bool fire(std::size_t i, std::int32_t membrane) {
    const bool fires = chip.inclusive ? membrane >= threshold[i] : membrane > threshold[i];
    const std::int32_t sent = fires ? std::clamp(membrane / threshold[i], 1, chip.max_spikes) : 0;
    std::int32_t after = fires && !chip.subtracts ? 0 : membrane - sent * threshold[i];
    if (chip.bounded_last) after = within(chip, after);
    v[i] = after;
    counts[i] += sent;
    spikes[i] = static_cast<float>(sent);
    record_v[i] = static_cast<float>(after);
    return fires;
  }
};

void neuronsStepAsTheirEquations(const Case& of, Random& random) {
  for (int number = 0; number < 40; ++number) {
    Layer ours(of, random), plain = ours;
    expect(of, ours.run(of.kernels) == plain.step());
    expectSame(of, ours.v, plain.v);
    expectSame(of, ours.current, plain.current);
    expectSame(of, ours.arriving, plain.arriving);
    expectSame(of, ours.counts, plain.counts);
    expectSame(of, ours.spikes, plain.spikes);
    expectSame(of, ours.record_v, plain.record_v);
    expectSame(of, ours.record_current, plain.record_current);
  }
}

void rowsAddUpInTheirOrder(const Case& of, Random& random) {
  constexpr Index kRows = 40;
  const Index stride = roundUp(of.size, 16);
  std::vector<std::int8_t> weights(sizeOf(kRows * stride));
  for (std::int8_t& weight : weights) weight = static_cast<std::int8_t>(random.below(256) - 128);
  for (const bool saturates : {false, true}) {
    for (const float most : {1.0F, 30.0F}) {
      const std::vector<std::uint32_t> ids = random.ids(kRows, 0.5);
      Floats values(ids.size());
      for (float& value : values) value = static_cast<float>(1 + random.below(static_cast<Index>(most)));
      const SpikeRow spikes{ids.data(), most == 1.0F ? nullptr : values.data(), static_cast<std::uint32_t>(ids.size()),
                            false};
      const IntegerSums add{stride, {weights.data(), stride}, 1, saturates, -2048, 2047};
      Ints ours(sizeOf(stride)), plain;
      for (std::int32_t& x : ours) x = static_cast<std::int32_t>(random.below(4096) - 2048);
      plain = ours;
      of.kernels.addIntegers(spikes, add, ours.data());
      for (std::size_t k = 0; k < ids.size(); ++k) {
        for (Index n = 0; n < stride; ++n) {
          std::int32_t& sum = plain[sizeOf(n)];
          sum += 2 * static_cast<std::int32_t>(values[k]) * weights[sizeOf(Index{ids[k]} * stride + n)];
          if (saturates) sum = std::clamp(sum, add.low, add.high);
        }
      }
      expectSame(of, ours, plain);
    }
  }
}

void givenNumbersAreAdded(const Case& of, Random& random) {
  Ints ours(sizeOf(of.size)), plain(ours);
  Floats from(ours.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    ours[i] = plain[i] = static_cast<std::int32_t>(random.below(100));
    from[i] = static_cast<float>(random.below(1 << 24) - (1 << 23));
    plain[i] += static_cast<std::int32_t>(from[i]);
  }
  of.kernels.addWhole(from.data(), of.size, ours.data());
  expectSame(of, ours, plain);
}

}  // namespace

int main() {
  forEachSet(neuronsStepAsTheirEquations);
  forEachSet(rowsAddUpInTheirOrder);
  forEachSet(givenNumbersAreAdded);
  return check::failures;
}
