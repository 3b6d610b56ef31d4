// Shared by the tests of time steps: surrogates and constants of neurons, and the equations in plain numbers.
//
// States, constants and cotangents are eighths, so that steps forward are exact, and so is whether a membrane is above
// its threshold or a surrogate has a slope there; neurons right at the threshold are among them.
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "kernel_checks.hpp"

namespace kernel_checks {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

inline constexpr Index kRows = 3, kStep = 1;
inline constexpr std::int32_t kEnds[kRows] = {5, kStep + 1,
                                              kStep};  // a sample that runs, its last step, and one past its end

inline constexpr std::initializer_list<Reset> kEveryReset{Reset::Subtract, Reset::Zero, Reset::None};
inline constexpr std::initializer_list<Surrogate> kEverySurrogate{
    Surrogate::Superspike, Surrogate::Arctan, Surrogate::Triangle,       Surrogate::Gaussian,
    Surrogate::Sigmoid,    Surrogate::Boxcar, Surrogate::StraightThrough};

// The equations of snnjax/surrogates.py.
inline double slopeAt(SurrogateForm surrogate, double x) {
  constexpr double kHalfPi = 1.57079632679489662;
  const double slope = surrogate.slope, scaled = slope * x, decayed = std::exp(-std::abs(scaled));
  if (std::abs(x) > surrogate.reach) return 0.0;
  switch (surrogate.kind) {
    case Surrogate::Superspike: return 1.0 / ((1.0 + std::abs(scaled)) * (1.0 + std::abs(scaled)));
    case Surrogate::Arctan: return 1.0 / (1.0 + kHalfPi * scaled * kHalfPi * scaled);
    case Surrogate::Triangle: return std::isnan(x) ? x : std::max(0.0, 1.0 - std::abs(scaled));
    case Surrogate::Gaussian: return std::exp(-scaled * scaled);
    case Surrogate::Sigmoid: return slope * decayed / ((1.0 + decayed) * (1.0 + decayed));
    case Surrogate::Boxcar: return std::abs(x) < 0.5 / slope ? slope : 0.0;
    case Surrogate::StraightThrough: return 1.0;
  }
  return 0.0;
}

// Which constants of the second state there are.
enum class Second { Absent, Least, All };

// And whether there are refractory periods.
struct States {
  Second second;
  bool are_refractory;
};
inline constexpr std::initializer_list<States> kEveryState{{Second::Absent, false}, {Second::Least, false},
                                                           {Second::All, false},    {Second::Absent, true},
                                                           {Second::Least, true},   {Second::All, true}};

// Constants of `columns` neurons, padded to whole vectors by thresholds that are infinite.
struct Constants {
  Index columns, padded;
  bool has_second, has_all, are_refractory;
  Floats numbers[11];

  Constants(const Case& of, Random& random, Second second, bool has_period = false)
      : columns(of.size),
        padded(roundUp(of.size, of.kernels.lanes)),
        has_second(second != Second::Absent),
        has_all(second == Second::All),
        are_refractory(has_period) {
    for (Floats& of_neurons : numbers) of_neurons = random.eighths(padded);
    for (Floats* thresholds : {&numbers[2], &numbers[3]}) {
      if (!thresholds->empty() && random.happens(0.5)) thresholds->front() = kInfinity;  // such a neuron is silent
      std::fill(thresholds->begin() + columns, thresholds->end(), kInfinity);
    }
  }

  NeuronConstants get() const {
    const auto from = [&](int i, bool there = true) { return there ? numbers[i].data() : nullptr; };
    return {{.decay = from(0),
             .threshold = from(2),
             .gain = from(1),
             .refractory = from(10, are_refractory),
             .second_state = {.w_decay = from(4, has_second),
                              .w_membrane = from(5, has_all),
                              .w_gain = from(6, has_all),
                              .w_jump = from(7, has_all),
                              .v_coupling = from(8, has_second),
                              .threshold_coupling = from(9, has_all)}},
            from(3)};
  }
};

// A constant that may be absent.
template <typename T = float>
T at(const float* constant, Index c) {
  return constant == nullptr ? T{0} : T{constant[c]};
}

template <typename T>
T reset(Reset kind, T v, T threshold) {
  if (!(v > threshold) || kind == Reset::None) return v;
  return kind == Reset::Subtract ? v - threshold : 0;
}

template <typename T>
T raised(const NeuronConstants& constants, const float* resting, Index c, T w) {
  const float* const coupling = constants.second_state.threshold_coupling;
  return coupling == nullptr ? T{resting[c]} : resting[c] + coupling[c] * w;
}

}  // namespace kernel_checks
