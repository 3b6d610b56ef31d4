// Time steps of neurons backward, of every instruction set of this machine, compared with plain loops in double
// precision.
#include "neuron_checks.hpp"

namespace {

using namespace kernel_checks;

// Surrogate derivatives err by some 1e-7, and a cotangent is the sum of about ten products with them; where they
// cancel, these are some ten times as large as what is left.
constexpr double kTolerance = 1e-5;

// What a call is asked for.
struct Wanted {
  Second second;
  Reset reset;
  bool detach_reset;
  bool all;  // lists, counts, cotangents of the last state and sums; without them there is a shorter way
  SurrogateForm surrogate;
};

// Operands and results. What is read in whole vectors is padded to them; membranes, second states and currents are not.
struct Backward {
  Index words;
  Matrix v, v_before, w, w_before, current, remaining, remaining_before;
  Matrix g_spikes, g_counts, g_last, g_last_w;
  Words listed;
  Matrix g_u, g_w, g_v;
  std::vector<Floats> sums;  // by GlifConstant, and last those of g_v and of g_v times what was given, here `v_before`

  Backward(const Constants& constants, Random& random)
      : words(wordsOf(constants.columns)),
        v(random, kRows, constants.columns),
        v_before(random, kRows, constants.columns),
        w(random, kRows, constants.columns),
        w_before(random, kRows, constants.columns),
        current(random, kRows, constants.columns),
        remaining(random, kRows, constants.padded),
        remaining_before(random, kRows, constants.padded),
        g_spikes(random, kRows, constants.padded),
        g_counts(random, kRows, constants.padded),
        g_last(random, kRows, constants.padded),
        g_last_w(random, kRows, constants.padded),
        listed(random.words(kRows * words)),
        g_u(random, kRows, constants.padded),
        g_w(random, kRows, constants.padded),
        g_v(random, kRows, constants.padded) {
    for (unsigned sum = 0; sum <= kGlifConstants + 1; ++sum) sums.push_back(random.eighths(constants.padded));
    for (float& g : g_spikes.numbers) g = random.happens(0.3) ? 0.0F : g;
  }
};

// The sums that a neuron takes part in: those of the second state only where there is one.
bool hasSum(const Wanted& wanted, unsigned sum) {
  return wanted.all && (sum < WDecay || sum >= kGlifConstants || wanted.second != Second::Absent);
}

void stepByKernel(const Case& of, const Constants& constants, const Wanted& wanted, Backward& to) {
  const auto where = [](bool there, const Matrix& matrix) { return there ? matrix.rows() : Rows<const float>{}; };
  const bool all = wanted.all, second = constants.has_second, holds = constants.are_refractory;
  StepBackward step{
      .rows = kRows,
      .columns = constants.columns,
      .constants = constants.get(),
      .reset = wanted.reset,
      .detach_reset = wanted.detach_reset,
      .surrogate = wanted.surrogate,
      .step = kStep,
      .ends = kEnds,
      .g_spikes = to.g_spikes.rows(),
      .listed = {all ? to.listed.data() : nullptr, to.words},
      .g_counts = where(all, to.g_counts),
      .g_last = {.v = where(all, to.g_last), .w = where(all, to.g_last_w), .remaining = {}},
      .after = {.v = to.v.rows(), .w = where(second, to.w), .remaining = where(holds, to.remaining)},
      .before = {.v = where(all, to.v_before),
                 .w = where(second && all, to.w_before),
                 .remaining = where(holds, to.remaining_before)},
      .current = where(all, to.current),
      .given = where(all, to.v_before),
      .next_v = where(all, to.v),
      .next_g_spikes = where(all, to.g_spikes),
      .g_state = {.v = to.g_u.toWrite(), .w = second ? to.g_w.toWrite() : Rows<float>{}, .remaining = {}},
      .g_v = to.g_v.toWrite(),
      .sums = {},
      .sum_current = hasSum(wanted, kGlifConstants) ? to.sums[kGlifConstants].data() : nullptr,
      .sum_given = hasSum(wanted, kGlifConstants + 1) ? to.sums[kGlifConstants + 1].data() : nullptr,
  };
  for (unsigned sum = 0; sum < kGlifConstants; ++sum) {
    step.sums.at(sum) = hasSum(wanted, sum) ? to.sums[sum].data() : nullptr;
  }
  of.kernels.stepBackward(step);
}

// One neuron of one sample: the derivative of `StepForward`, by the chain rule.
void neuronInLoops(const Constants& constants, const Wanted& wanted, Index r, Index c, Backward& to) {
  const NeuronConstants given = constants.get();
  const SecondState<const float*>& second_state = given.second_state;
  const bool all = wanted.all, second = constants.has_second, is_last = kStep + 1 == kEnds[r];
  const double v = to.v.at(r, c), w = second ? to.w.at(r, c) : 0.0, threshold = raised(given, given.threshold, c, w);
  const bool held = constants.are_refractory && to.remaining_before.at(r, c) > 0.0F;
  const bool held_next = constants.are_refractory && to.remaining.at(r, c) > 0.0F;
  // What comes back from the next step reaches this one through its equation, or as it is.
  const double g_v_after = held_next ? to.g_u.at(r, c) : 0.0, g_u = held_next ? 0.0 : to.g_u.at(r, c);
  const double g_w_after = second && held_next ? to.g_w.at(r, c) : 0.0;
  const double g_w_next = second && !held_next ? to.g_w.at(r, c) : 0.0;
  const double slope = slopeAt(wanted.surrogate, v - threshold);

  double g_spike = to.g_spikes.at(r, c);
  if (all && !isSet(to.listed.data() + r * to.words, c)) g_spike = 0.0;
  if (all && v > raised(given, given.second_threshold, c, w)) g_spike += to.g_counts.at(r, c);
  if (held) g_spike = 0.0;
  g_spike += at<double>(second_state.w_jump, c) * g_w_next;

  double g_v = g_u, g_threshold = 0.0;  // u is v - threshold * spike, v * (1 - spike), or v
  if (wanted.reset == Reset::Zero && v > threshold) g_v = 0.0;
  if (wanted.reset == Reset::Subtract && v > threshold) g_threshold = -g_u;
  if (!wanted.detach_reset && wanted.reset != Reset::None && !held_next) {
    const double g_removed = -g_u * (wanted.reset == Reset::Zero ? v : threshold) * slope;
    g_v += g_removed;
    g_threshold -= g_removed;
  }
  if (g_spike != 0.0) {
    g_v += g_spike * slope;
    g_threshold -= g_spike * slope;
  }
  if (all && is_last) g_v += to.g_last.at(r, c);
  g_v += g_v_after;
  g_v += at<double>(second_state.w_membrane, c) * g_w_next;
  const double g_last_w = all && is_last && second ? to.g_last_w.at(r, c) : 0.0;
  double g_w = at<double>(second_state.w_decay, c) * g_w_next + g_w_after +
               (second_state.threshold_coupling == nullptr ? 0.0 : second_state.threshold_coupling[c] * g_threshold) +
               g_last_w + at<double>(second_state.v_coupling, c) * (held ? 0.0 : g_v);
  to.g_u.at(r, c) = static_cast<float>(held ? g_v : given.decay[c] * g_v);
  if (second) to.g_w.at(r, c) = static_cast<float>(g_w);
  if (held) g_v = g_w = 0.0;  // of what the step has computed
  const double g_current = second_state.w_gain == nullptr ? g_v : given.gain[c] * g_v + second_state.w_gain[c] * g_w;

  to.g_v.at(r, c) = static_cast<float>(g_current);
  const double before = to.v_before.at(r, c), current = to.current.at(r, c),
               w_before = second ? to.w_before.at(r, c) : 0.0;
  const double threshold_before = raised(given, given.threshold, c, w_before);
  const auto add = [&](unsigned sum, double x) {
    if (hasSum(wanted, sum)) to.sums[sum][sizeOf(c)] += static_cast<float>(x);
  };
  add(Decay, g_v * reset(wanted.reset, before, threshold_before));
  add(Threshold, g_threshold);
  add(Gain, g_v * current);
  add(WDecay, g_w * w_before);
  add(WMembrane, g_w * before);
  add(WGain, g_w * current);
  add(WJump, before > threshold_before ? g_w : 0.0);
  add(VCoupling, g_v * w);
  add(ThresholdCoupling, g_threshold * w);
  add(kGlifConstants, g_current);
  add(kGlifConstants + 1, g_current * before);
}

void stepInLoops(const Constants& constants, const Wanted& wanted, Backward& to) {
  for (Index r = 0; r < kRows; ++r) {
    for (Index c = 0; c < constants.columns; ++c) {
      if (kStep < kEnds[r]) {
        neuronInLoops(constants, wanted, r, c, to);
      } else {
        to.g_v.at(r, c) = 0.0F;
      }
    }
  }
}

// The values past the columns, up to a whole vector, are unspecified.
void ignorePadding(const Constants& constants, Backward& results) {
  for (Index c = constants.columns; c < constants.padded; ++c) {
    for (Floats& sum : results.sums) sum[sizeOf(c)] = 0.0F;
    for (Index r = 0; r < kRows; ++r) {
      for (Matrix* matrix : {&results.g_u, &results.g_w, &results.g_v}) matrix->at(r, c) = 0.0F;
    }
  }
}

void stepIsHeldAgainstLoops(const Case& of, const Constants& constants, const Wanted& wanted, Random& random) {
  Backward got(constants, random), want = got;
  // A cotangent of 0 stays 0 whatever the slope: with nothing else of that neuron, NaN goes no further.
  if (!wanted.all && wanted.detach_reset && constants.columns > 0 && !constants.has_second &&
      !constants.are_refractory) {
    for (Backward* of_one : {&got, &want}) of_one->v.at(0, 0) = kNaN, of_one->g_spikes.at(0, 0) = 0.0F;
  }
  stepByKernel(of, constants, wanted, got);
  stepInLoops(constants, wanted, want);
  ignorePadding(constants, got);
  ignorePadding(constants, want);
  expectNear(of, got.g_u.numbers, want.g_u.numbers, kTolerance);
  expectNear(of, got.g_w.numbers, want.g_w.numbers, kTolerance);
  expectNear(of, got.g_v.numbers, want.g_v.numbers, kTolerance);
  for (std::size_t sum = 0; sum < want.sums.size(); ++sum) expectNear(of, got.sums[sum], want.sums[sum], kTolerance);
}

void stepsBackwardAreTheDerivatives(const Case& of, Random& random) {
  for (const auto& [second, are_refractory] : kEveryState) {
    const Constants constants(of, random, second, are_refractory);
    for (const Reset reset : kEveryReset) {
      for (const Surrogate kind : kEverySurrogate) {
        for (const bool detach_reset : {false, true}) {
          for (const bool all : {false, true}) {
            const SurrogateForm surrogate{kind, 2.0F, detach_reset ? kInfinity : 1.25F};
            stepIsHeldAgainstLoops(of, constants, {second, reset, detach_reset, all, surrogate}, random);
          }
        }
      }
    }
  }
}

}  // namespace

int main() {
  forEachSet(stepsBackwardAreTheDerivatives);
  return check::failures;
}
