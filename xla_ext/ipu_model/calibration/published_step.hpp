// The training step that was measured in the hardware log of ipu.md 1.3, phase by phase as its public source builds it.
// It is a different program from ours (tests/ipu/calibration.py), with a placement that a jitted step cannot ask for:
// calibrating on it separates errors of the model from differences between the programs.
#pragma once

#include <vector>

#include "costs/costs.hpp"

namespace ipu_model::calibration {

struct PublishedNetwork {
  std::vector<unsigned> neurons;     // inputs, hidden layers, classes
  std::vector<unsigned> capacities;  // of the lists of the inputs and of each layer
  unsigned batch = 48;
  unsigned steps = 100;
};

// Tile cycles of one optimiser step. `fill` is the part of each list's slots that hold a spike (1: lists at capacity).
struct StepCycles {
  double forward = 0, backward = 0;  // of one time step
  double once = 0;                   // optimiser, zeroing and sums of the weight gradients, host
  double total = 0;
};

StepCycles publishedStep(const Chip& chip, const PublishedNetwork& network, double fill);

}  // namespace ipu_model::calibration
