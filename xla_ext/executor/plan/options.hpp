// The options of a plan: `compiler_options` of jax.jit, which begin with `ipu_` there; and what its profile says
// besides.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "executor/plan/plan.hpp"

namespace snnjax::executor {

// The chips that programs can be compiled for.
constexpr std::array<std::string_view, 4> kVersions = {"mk1", "mk2", "bow", "c600"};
// For the profile alone: sentences, and the names of all arguments and results in order.
constexpr std::array<std::string_view, 3> kFacts = {"note", "argument", "result"};

constexpr unsigned kMostAttempts = 2;  // PLANS_OF_A_FORM in snnjax/ipu/lowering/rules/calls.py

struct PlanOptions {
  std::string version;         // empty: the device's own
  unsigned tiles = 0;          // of each IPU; 0: as many as the device has
  unsigned ipus = 1;           // of each partition
  bool half_partials = false;  // sums of halves are halves, on a tile and between tiles: Poplar's partialsType
  unsigned attempts = 0;       // plans of the program that did not fit, as the lowering says
};

// Throws Error where there is no such option, or no such value.
PlanOptions optionsOf(const Plan& plan);

// An option that must be `expected`.
[[noreturn]] void refuseOption(std::string_view name, const std::string& expected, const std::string& actual);

}  // namespace snnjax::executor
