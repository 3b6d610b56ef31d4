// The twelve cells of the hardware log of ipu.md 1.3: N-MNIST training steps of graphcore_snn on one IPU.
#pragma once

#include <string>
#include <vector>

#include "calibration/report.hpp"
#include "costs/costs.hpp"

namespace ipu_model::calibration {

struct Cell {
  double max_activity;
  std::vector<unsigned> neurons;     // inputs, hidden layers, classes
  std::vector<unsigned> capacities;  // of the lists of the inputs and of each layer
  unsigned low, high;                // whole milliseconds, over the three second thresholds
  [[nodiscard]] std::string name() const;
  // Keras prints milliseconds rounded to whole ones.
  [[nodiscard]] Row row(double predicted) const { return {name(), predicted, low - 0.5, high + 0.5}; }
};

inline constexpr unsigned kBatch = 48;
inline constexpr unsigned kSteps = 100;

std::vector<Cell> cells();

// All cells by publishedStep, in milliseconds; `fill` as there.
Table publishedSteps(const Chip& chip, double fill);

}  // namespace ipu_model::calibration
