// Time steps of neurons forward and surrogate derivatives, of every instruction set of this machine, compared with
// plain loops.
#include "neuron_checks.hpp"

namespace {

using namespace kernel_checks;

// Float32 rounds by 6e-8, `exponential` errs by 1e-7, and a slope is some five operations of either.
constexpr double kSlopeTolerance = 1e-6;

// To nearest, ties to even.
std::uint16_t bfloat16Of(float x) {
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void derivativesAreThoseOfTheEquations(const Case& of, Random& random) {
  for (const Surrogate kind : kEverySurrogate) {
    for (const float reach : {1.25F, kInfinity}) {
      const SurrogateForm surrogate{kind, 2.0F, reach};
      Floats x = random.eighths(of.size), got(x.size());
      for (const float odd : {kNaN, kInfinity, -kInfinity, 0.25F, -0.25F, reach}) {
        if (!x.empty()) x[sizeOf(random.below(of.size))] = odd;
      }
      std::vector<double> want;
      for (const float own : x) want.push_back(slopeAt(surrogate, own));
      of.kernels.derivative(surrogate, x.data(), of.size, got.data());
      expectNear(of, got, want, kSlopeTolerance);
    }
  }
}

void slopesAreMarked(const Case& of, Random& random) {
  const Constants constants(of, random, Second::All);
  const NeuronConstants given = constants.get();
  Floats v = random.eighths(of.size), w = random.eighths(of.size), next = v;
  if (of.size > 2) v[sizeOf(of.size - 1)] = kNaN;
  for (const Surrogate kind :
       {Surrogate::Triangle, Surrogate::Boxcar, Surrogate::Gaussian, Surrogate::StraightThrough}) {
    const SurrogateForm surrogate{kind, 2.0F, kind == Surrogate::Gaussian ? 1.25F : kInfinity};
    for (const bool has_w : {false, true}) {
      Words got = random.words(wordsOf(of.size)), want(got.size());
      for (Index c = 0; c < of.size; ++c) {
        const float threshold = raised(given, given.threshold, c, has_w ? w[sizeOf(c)] : 0.0F);
        const bool has_slope = slopeAt(surrogate, v[sizeOf(c)] - threshold) != 0.0;
        want[sizeOf(c / 64)] |= std::uint64_t{has_slope} << (c % 64);
      }
      of.kernels.markSlopes(surrogate, given, v.data(), has_w ? w.data() : nullptr, has_w ? nullptr : next.data(),
                            of.size, got.data());
      expectSame(of, got, want);
    }
  }
}

// Where steps forward put what they compute. What is read in whole vectors is padded to them; records are not.
struct Forward {
  Matrix current, scale, v, w, remaining, counts, record, record_current;  // scale: factor and term of the currents
  Words spikes, near;
  std::vector<std::uint16_t> record_bfloat16;

  Forward(const Constants& constants, Random& random)
      : current(random, kRows, constants.padded),
        scale(random, 2, constants.padded),
        v(random, kRows, constants.padded, 16),
        w(random, kRows, constants.padded),
        remaining(random, kRows, constants.padded),
        counts(random, kRows, constants.padded),
        record(random, kRows, constants.columns),
        record_current(random, kRows, constants.columns),
        spikes(random.words(kRows * wordsOf(constants.columns))),
        near(random.words(kRows * wordsOf(constants.columns))),
        record_bfloat16(record.numbers.size()) {}
};

// What a call returns besides spikes and states.
struct Wanted {
  Reset reset;
  bool near, record, record_bfloat16, streams;
  bool apart;  // from states before the step, by currents with a factor and a term, without counts
};

void stepInLoops(const Constants& constants, const Wanted& wanted, Forward& to) {
  const NeuronConstants given = constants.get();
  const SecondState<const float*>& second_state = given.second_state;
  const Index words = wordsOf(constants.columns);
  std::fill(to.spikes.begin(), to.spikes.end(), 0);
  if (wanted.near) std::fill(to.near.begin(), to.near.end(), 0);
  for (Index r = 0; r < kRows; ++r) {
    const bool runs = kStep < kEnds[r];
    for (Index c = 0; c < constants.padded; ++c) {
      float &v = to.v.at(r, c), &w = to.w.at(r, c), threshold = given.threshold[c], second = given.second_threshold[c];
      float current = to.current.at(r, c);
      if (wanted.apart) current = to.scale.at(0, c) * current + to.scale.at(1, c);
      if (runs) {
        float& remaining = to.remaining.at(r, c);
        const bool held = constants.are_refractory && remaining > 0.0F;
        const float before = v, old = constants.has_second ? raised(given, given.threshold, c, w) : threshold;
        const float w_before = w;
        v = given.decay[c] * reset(wanted.reset, before, old) + given.gain[c] * current;
        if (constants.has_second) {
          w = second_state.w_decay[c] * w + at(second_state.w_membrane, c) * before +
              at(second_state.w_gain, c) * current + (before > old ? at(second_state.w_jump, c) : 0.0F);
          v += at(second_state.v_coupling, c) * w;
          if (held) w = w_before;
          threshold = raised(given, given.threshold, c, w);
          second = raised(given, given.second_threshold, c, w);
        }
        if (held) v = before;
        const std::uint64_t bit = std::uint64_t{1} << (c % 64);
        if (constants.are_refractory) {
          remaining = v > threshold && !held ? given.refractory[c] : std::max(remaining - 1.0F, 0.0F);
        }
        if (held) {
          // silent
        } else if (v > threshold) {
          if (!wanted.apart) to.counts.at(r, c) += 1.0F;
          to.spikes[sizeOf(r * words + c / 64)] |= bit;
        } else if (wanted.near && v > second) {
          to.near[sizeOf(r * words + c / 64)] |= bit;
        }
      }
      if (c >= constants.columns) continue;
      if (wanted.record) to.record.at(r, c) = v;
      // Past its end a sample is recorded by its resting threshold: it has no second state then.
      const float distance = v - originOf(threshold);
      if (wanted.record_bfloat16) to.record_bfloat16[sizeOf(r * to.record.stride + c)] = bfloat16Of(distance);
      if (wanted.record || wanted.record_bfloat16) to.record_current.at(r, c) = runs ? current : 0.0F;
    }
  }
}

void stepByKernel(const Case& of, const Constants& constants, const Wanted& wanted, Forward& to) {
  const Index words = wordsOf(constants.columns);
  const bool records = wanted.record || wanted.record_bfloat16;
  Forward from = to;
  const auto stateOf = [&](Forward& all) {
    return NeuronState<Rows<float>>{
        .v = all.v.toWrite(),
        .w = constants.has_second ? all.w.toWrite() : Rows<float>{nullptr, 0},
        .remaining = constants.are_refractory ? all.remaining.toWrite() : Rows<float>{nullptr, 0}};
  };
  NeuronState<Rows<const float>> before{};
  for (unsigned i = 0; wanted.apart && i < kNeuronStates; ++i) {
    const Rows<float> state = stateOf(to).at(i), own = stateOf(from).at(i);
    before.at(i) = {own.data, own.stride};
    for (Index r = 0; state.data != nullptr && r < kRows; ++r) std::fill_n(state.row(r), constants.padded, kNaN);
  }
  of.kernels.stepForward({
      .rows = kRows,
      .columns = constants.columns,
      .constants = constants.get(),
      .reset = wanted.reset,
      .step = kStep,
      .ends = kEnds,
      .current = to.current.rows(),
      .factor = wanted.apart ? to.scale.rows().row(0) : nullptr,
      .term = wanted.apart ? to.scale.rows().row(1) : nullptr,
      .before = before,
      .state = stateOf(to),
      .counts = wanted.apart ? Rows<float>{nullptr, 0} : to.counts.toWrite(),
      .spikes = {to.spikes.data(), words},
      .near = {wanted.near ? to.near.data() : nullptr, words},
      .record = wanted.record ? to.record.toWrite() : Rows<float>{nullptr, 0},
      .record_bfloat16 = {wanted.record_bfloat16 ? to.record_bfloat16.data() : nullptr, to.record.stride},
      .record_current = records ? to.record_current.toWrite() : Rows<float>{nullptr, 0},
      .record_streams = wanted.streams,
  });
}

void stepsForwardAreExact(const Case& of, Random& random) {
  for (const auto& [second, are_refractory] : kEveryState) {
    const Constants constants(of, random, second, are_refractory);
    for (const Reset reset : kEveryReset) {
      for (const bool near : {false, true}) {
        for (const int record : {0, 1, 2, 3}) {
          const Wanted wanted{reset, near, record == 1, record == 2, record == 1 && near, record == 3};
          Forward got(constants, random), want = got;
          stepInLoops(constants, wanted, want);
          stepByKernel(of, constants, wanted, got);
          expectSame(of, got.v.numbers, want.v.numbers);
          expectSame(of, got.w.numbers, want.w.numbers);
          expectSame(of, got.remaining.numbers, want.remaining.numbers);
          expectSame(of, got.counts.numbers, want.counts.numbers);
          expectSame(of, got.spikes, want.spikes);
          expectSame(of, got.near, want.near);
          expectSame(of, got.record.numbers, want.record.numbers);
          expectSame(of, got.record_bfloat16, want.record_bfloat16);
          expectSame(of, got.record_current.numbers, want.record_current.numbers);
        }
      }
    }
  }
}

// All but the membranes again, from these.
void statesAgainAreThoseOfTheStep(const Case& of, Random& random) {
  for (const auto& [second, are_refractory] : kEveryState) {
    const Constants constants(of, random, second, are_refractory);
    const Wanted wanted{Reset::Subtract, false, false, false, false, false};
    Forward step(constants, random);
    const Forward first = step;
    Forward got = step;
    const auto where = [](bool there, const Matrix& matrix) { return there ? matrix.rows() : Rows<const float>{}; };
    const auto to = [](bool there, Matrix& matrix) { return there ? matrix.toWrite() : Rows<float>{}; };
    stepInLoops(constants, wanted, step);
    of.kernels.stepAgain(
        {.rows = kRows,
         .columns = of.size,
         .constants = constants.get(),
         .step = kStep,
         .ends = kEnds,
         .before = {.v = first.v.rows(),
                    .w = where(constants.has_second, first.w),
                    .remaining = where(are_refractory, first.remaining)},
         .v = step.v.rows(),
         .current = step.current.rows(),
         .after = {.v = {}, .w = to(constants.has_second, got.w), .remaining = to(are_refractory, got.remaining)}});
    for (Index r = 0; r < kRows; ++r) {  // the values past the columns are unspecified
      for (Index c = of.size; c < constants.padded; ++c) {
        got.w.at(r, c) = step.w.at(r, c);
        got.remaining.at(r, c) = step.remaining.at(r, c);
      }
    }
    expectSame(of, got.w.numbers, step.w.numbers);
    expectSame(of, got.remaining.numbers, step.remaining.numbers);
  }
}

}  // namespace

int main() {
  forEachSet(derivativesAreThoseOfTheEquations);
  forEachSet(slopesAreMarked);
  forEachSet(stepsForwardAreExact);
  forEachSet(statesAgainAreThoseOfTheStep);
  return check::failures;
}
