// The backward pass of neurons on given currents, all steps of a sample at once.
#pragma once

#include "lif_layer_sums.hpp"

namespace snnjax {

// Whether it is of that kind: few steps, numbers that can be read where they lie, and no derivative by a neuron's own
// constants or its first state.
bool takesAllSteps(const LayerBackward& pass);

void runAllSteps(const LayerBackward& pass, Sums& sums, const Threads& threads);

}  // namespace snnjax
