// `lif_step` on tiles: each tile holds some neurons, with their constants, for all rows of the batch, without any
// exchange. Defined by snnjax/ops/lif_step.py.
#pragma once

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

#include "network_plan.hpp"
#include "spread.hpp"

namespace snnjax::builders {

struct LifStepOptions {
  unsigned rows = 0;
  unsigned neurons = 0;
  bool half_membranes = false;
  Reset reset = Reset::Subtract;
  ResetTime reset_time = ResetTime::BeforeDecay;
  bool detach_reset = true;
  bool spike_from_old = false;  // spikes are those of the old membrane
  bool inclusive = false;       // also at the threshold
  Surrogate surrogate = Surrogate::SuperSpike;
  float slope = 10.0F;
};

// `T` is the membranes' type, a block is one tile's [rows, columns].
struct LifStepTensors {
  TileRange tiles;                        // of the neurons
  poplar::Tensor v, current;              // in: T [tiles, rows * columns]
  poplar::Tensor decay, threshold, gain;  // in: float [tiles, columns]
  poplar::Tensor v_new, spikes;           // out: T [tiles, rows * columns]
};

struct LifStepCotangents {
  poplar::Tensor g_v_new, g_spikes;             // in: T [tiles, rows * columns]
  poplar::Tensor g_v, g_current;                // out: T [tiles, rows * columns]
  poplar::Tensor g_decay, g_threshold, g_gain;  // out: float [tiles, workers * columns], to be summed over workers
};

LifStepTensors addLifStepTensors(poplar::Graph& graph, const LifStepOptions& options);

poplar::program::Sequence addLifStep(poplar::Graph& graph, const LifStepOptions& options,
                                     const LifStepTensors& tensors);

LifStepCotangents addLifStepCotangents(poplar::Graph& graph, const LifStepOptions& options,
                                       const LifStepTensors& tensors);

poplar::program::Sequence addLifStepBackward(poplar::Graph& graph, const LifStepOptions& options,
                                             const LifStepTensors& tensors, const LifStepCotangents& cotangents);

}  // namespace snnjax::builders
