#include "executor/plan/options.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include "builders/error.hpp"

namespace snnjax::executor {
namespace {

constexpr unsigned kMostIpus = 64;  // of a partition

unsigned numberOf(std::string_view name, const std::string& text, const std::string& expected, unsigned most) {
  unsigned number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, number);
  if (failure == std::errc() && stop == end && number >= 1 && number <= most) return number;
  refuseOption(name, expected, text);
}

}  // namespace

void refuseOption(std::string_view name, const std::string& expected, const std::string& actual) {
  throw Error(ErrorCode::kInvalidArgument, "compile: `ipu_" + std::string(name) + "` must " + expected + ", got \"" +
                                               actual + "\". Leave it out for the device's own.");
}

PlanOptions optionsOf(const Plan& plan) {
  PlanOptions options;
  for (const auto& [name, value] : plan.options) {
    if (std::ranges::find(kFacts, name) != kFacts.end()) continue;
    if (name == "version") {
      if (std::ranges::find(kVersions, value) == kVersions.end()) {
        refuseOption(name, "be mk1, mk2, bow or c600", value);
      }
      options.version = value;
    } else if (name == "tiles") {
      options.tiles = numberOf(name, value, "be an integer of at least 1", std::numeric_limits<unsigned>::max());
    } else if (name == "ipus") {
      options.ipus = numberOf(name, value, "be an integer from 1 to " + std::to_string(kMostIpus), kMostIpus);
    } else if (name == "half_partials") {
      if (value != "true" && value != "false") refuseOption(name, "be true or false", value);
      options.half_partials = value == "true";
    } else if (name == "attempts") {
      options.attempts = numberOf(name, value, "be an integer from 1 to 2", kMostAttempts);
    } else {
      throw Error(ErrorCode::kInvalidArgument,
                  "compile: `compiler_options` must be among ipu_version, ipu_tiles, ipu_ipus and ipu_half_partials, "
                  "got ipu_" +
                      name + ". Leave it out.");
    }
  }
  return options;
}

}  // namespace snnjax::executor
