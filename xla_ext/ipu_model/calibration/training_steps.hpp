// Our own training step (xla_ext/builders/training_step.hpp) on the cells of the hardware log.
#pragma once

#include "calibration/hardware_log.hpp"

namespace ipu_model::calibration {

// The cells on each of `chips` ("mk2", "bow"), in milliseconds beside what another program, graphcore_snn, was measured
// to take. Runs on the model with every list full; `codelets` is the snnjax.gp of poplar_kernels.
std::vector<Table> trainingSteps(std::span<const char* const> chips, const std::string& codelets);

}  // namespace ipu_model::calibration
