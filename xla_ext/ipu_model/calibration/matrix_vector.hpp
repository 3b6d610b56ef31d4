// Tutorial 6 of graphcore/examples (v3.2.0): a float matrix of 10,000 x 1,000 times a vector on a Mk2, rows split in 7.
#pragma once

#include "calibration/report.hpp"

namespace ipu_model::calibration {

// Runs the program on the model. Throws Error if its result is wrong.
Table matrixVector();

}  // namespace ipu_model::calibration
