// Our own training step (xla_ext/builders/training_step.hpp) on the cells of the hardware log.
#pragma once

#include <ipu_model/profile.hpp>

#include "builders/tiles_of_layers.hpp"
#include "calibration/hardware_log.hpp"

namespace ipu_model::calibration {

// One training step of so many time steps, run on the model. Cycles do not depend on the clock.
struct StepRun {
  Profile profile;
  double build_seconds = 0;  // of this machine: graph, engine, first writes
  double run_seconds = 0;    // of this machine: the step itself

  // On a chip with that clock; the host's streams take the same time with any.
  [[nodiscard]] double milliseconds(const Chip& chip) const;
};

// The tiles of its layers, the readout last.
std::vector<snnjax::builders::TileRange> tilesOf(const Cell& cell);

// With every list full; `codelets` is the snnjax.gp of poplar_kernels.
StepRun runTrainingStep(const Cell& cell, unsigned steps, const std::string& codelets);

// Of all cells; takes a minute.
std::vector<StepRun> runTrainingSteps(const std::string& codelets);

// Those beside the measurements of another program, graphcore_snn.
Table trainingSteps(const Chip& chip, std::span<const StepRun> runs);

}  // namespace ipu_model::calibration
