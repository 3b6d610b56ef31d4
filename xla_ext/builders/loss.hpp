// The loss of a network with a leaky readout, and the gradient that the backward pass starts from.
#pragma once

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

#include "training_step.hpp"

namespace snnjax::builders {

// Samples are spread over the homes of the last lists: each gathers its samples' outputs of all steps and sends their
// gradient back.
poplar::program::Sequence addCrossEntropy(poplar::Graph& graph, const NetworkPlan& plan, const TrainingTensors& tensors,
                                          Pooling pooling);

}  // namespace snnjax::builders
