// All time steps of neurons at once, of every instruction set of this machine, compared with one step after the other.
#include "neuron_checks.hpp"

namespace {

using namespace kernel_checks;

constexpr Index kSteps = 5;
// The same operations, of which compilers fuse others: a cotangent is the sum of about ten products in float32.
constexpr double kTolerance = 1e-5;

// One sample of neurons in whole vectors, some of whose operands may be absent.
struct Sample {
  Index columns, words;
  std::int32_t end;
  bool has_all;
  Matrix current, scale, g_spikes;  // scale: factor, term and that of the cotangents
  Floats first, g_counts, g_last;
  Words listed;

  Sample(const Constants& constants, std::int32_t end_of, bool all, Random& random)
      : columns(constants.padded),
        words(wordsOf(columns)),
        end(end_of),
        has_all(all),
        current(random, kSteps, columns),
        scale(random, 3, columns),
        g_spikes(random, kSteps, columns),
        first(random.eighths(columns)),
        g_counts(random.eighths(columns)),
        g_last(random.eighths(columns)),
        listed(random.words(kSteps * words)) {}

  const float* factor() const { return has_all ? scale.rows().row(0) : nullptr; }
  const float* term() const { return has_all ? scale.rows().row(1) : nullptr; }
  // An operand of a single step, which may be absent.
  Rows<const float> rows(const Floats& of) const { return {has_all ? of.data() : nullptr, columns}; }
};

struct Forward {
  Floats state, counts, v;
  Words spikes, near;

  explicit Forward(const Sample& of)
      : state(of.first),
        counts(sizeOf(of.columns)),
        v(sizeOf(kSteps * of.columns)),
        spikes(sizeOf(kSteps * of.words), 1),
        near(spikes) {}
};

void stepForwards(const Case& of, const Constants& constants, Reset reset, const Sample& sample, Forward& to) {
  for (Index step = 0; step < kSteps; ++step) {
    const Index words = sample.words;
    of.kernels.stepForward({
        .rows = 1,
        .columns = sample.columns,
        .constants = constants.get(),
        .reset = reset,
        .step = step,
        .ends = &sample.end,
        .current = {sample.current.rows().row(step), 0},
        .factor = sample.factor(),
        .term = sample.term(),
        .before = {},
        .state = {.v = {to.state.data(), 0}, .w = {}, .remaining = {}},
        .counts = {sample.has_all ? to.counts.data() : nullptr, 0},
        .spikes = {to.spikes.data() + step * words, 0},
        .near = {sample.has_all ? to.near.data() + step * words : nullptr, 0},
        .record = {},
        .record_bfloat16 = {},
        .record_current = {},
        .record_streams = false,
    });
    if (step < sample.end) std::copy(to.state.begin(), to.state.end(), to.v.begin() + step * sample.columns);
  }
}

void stepAllForward(const Case& of, const Constants& constants, Reset reset, const Sample& sample, Forward& to) {
  of.kernels.stepsForward({
      .steps = kSteps,
      .columns = sample.columns,
      .constants = constants.get(),
      .reset = reset,
      .end = sample.end,
      .current = sample.current.rows(),
      .next = 0,
      .factor = sample.factor(),
      .term = sample.term(),
      .state = to.state.data(),
      .counts = sample.has_all ? to.counts.data() : nullptr,
      .spikes = {to.spikes.data(), sample.words},
      .near = {sample.has_all ? to.near.data() : nullptr, sample.words},
      .v = {to.v.data(), sample.columns},
  });
}

// Results, of which those of given currents lie in aligned vectors.
struct Backward {
  static constexpr std::uintptr_t kLine = 64;
  Floats memory, sum_current, sum_given;
  float* g_current;

  explicit Backward(const Sample& of)
      : memory(sizeOf(kSteps * of.columns) + kLine),
        sum_current(sizeOf(of.columns), 1.0F),
        sum_given(sum_current),
        g_current(
            reinterpret_cast<float*>((reinterpret_cast<std::uintptr_t>(memory.data()) + kLine - 1) / kLine * kLine)) {}
  Floats cotangents(const Sample& of) const { return {g_current, g_current + kSteps * of.columns}; }
};

// How neurons are reset, and the derivatives of it.
struct Derivative {
  Reset reset;
  bool detach_reset;
  SurrogateForm surrogate;
};

void stepBackwards(const Case& of, const Constants& constants, const Derivative& by, const Sample& sample,
                   const Forward& after, Backward& to) {
  Floats g_state(sizeOf(sample.columns)), g_v(g_state);
  for (Index step = kSteps; step-- > 0;) {
    StepBackward call{
        .rows = 1,
        .columns = sample.columns,
        .constants = constants.get(),
        .reset = by.reset,
        .detach_reset = by.detach_reset,
        .surrogate = by.surrogate,
        .step = step,
        .ends = &sample.end,
        .g_spikes = {sample.g_spikes.rows().row(step), 0},
        .listed = {sample.has_all ? sample.listed.data() + step * sample.words : nullptr, 0},
        .g_counts = sample.rows(sample.g_counts),
        .g_last = {.v = sample.rows(sample.g_last), .w = {}, .remaining = {}},
        .after = {.v = {after.v.data() + step * sample.columns, 0}, .w = {}, .remaining = {}},
        .before = {},
        .current = {},
        .given = {sample.current.rows().row(step), 0},
        .next_v = {},
        .next_g_spikes = {},
        .g_state = {.v = {g_state.data(), 0}, .w = {}, .remaining = {}},
        .g_v = {g_v.data(), 0},
        .sums = {},
        .sum_current = sample.has_all ? to.sum_current.data() : nullptr,
        .sum_given = sample.has_all ? to.sum_given.data() : nullptr,
    };
    of.kernels.stepBackward(call);
    for (Index c = 0; c < sample.columns; ++c) {
      to.g_current[step * sample.columns + c] = sample.scale.at(2, c) * g_v[sizeOf(c)];
    }
  }
}

void stepAllBackward(const Case& of, const Constants& constants, const Derivative& by, const Sample& sample,
                     Backward& to) {
  of.kernels.stepsBackward({
      .steps = kSteps,
      .columns = sample.columns,
      .constants = constants.get(),
      .reset = by.reset,
      .detach_reset = by.detach_reset,
      .surrogate = by.surrogate,
      .end = sample.end,
      .current = sample.current.rows(),
      .next = 0,
      .factor = sample.factor(),
      .term = sample.term(),
      .first_v = sample.first.data(),
      .g_spikes = sample.g_spikes.rows(),
      .listed = {sample.has_all ? sample.listed.data() : nullptr, sample.words},
      .g_counts = sample.has_all ? sample.g_counts.data() : nullptr,
      .g_last = sample.has_all ? sample.g_last.data() : nullptr,
      .scale = sample.scale.rows().row(2),
      .g_current = {to.g_current, sample.columns},
      .sum_current = sample.has_all ? to.sum_current.data() : nullptr,
      .sum_given = sample.has_all ? to.sum_given.data() : nullptr,
  });
}

void allStepsAreThoseOneByOne(const Case& of, Random& random) {
  const Constants constants(of, random, Second::Absent);
  for (const Reset reset : kEveryReset) {
    for (const std::int32_t end : {0, 2, static_cast<std::int32_t>(kSteps)}) {
      for (const bool has_all : {false, true}) {
        const Sample sample(constants, end, has_all, random);
        Forward got(sample), want(sample);
        stepAllForward(of, constants, reset, sample, got);
        stepForwards(of, constants, reset, sample, want);
        expectSame(of, got.state, want.state);
        expectSame(of, got.counts, want.counts);
        expectSame(of, got.v, want.v);
        expectSame(of, got.spikes, want.spikes);
        expectSame(of, got.near, want.near);
        for (const Surrogate kind : kEverySurrogate) {
          const Derivative by{reset, has_all != (end == 2), {kind, 2.0F, end == 2 ? 1.25F : kInfinity}};
          Backward all(sample), single(sample);
          stepAllBackward(of, constants, by, sample, all);
          stepBackwards(of, constants, by, sample, want, single);
          expectNear(of, all.cotangents(sample), single.cotangents(sample), kTolerance);
          expectNear(of, all.sum_current, single.sum_current, kTolerance);
          expectNear(of, all.sum_given, single.sum_given, kTolerance);
        }
      }
    }
  }
}

}  // namespace

int main() {
  forEachSet(allStepsAreThoseOneByOne);
  return check::failures;
}
