// One step of training on the device: inputs from the host, `lif_network` forward, cross-entropy of its leaky readout,
// back-propagation through time, Adam. Parameters, gradients and moments never leave their tiles.
#pragma once

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <vector>

#include "lif_network.hpp"

namespace snnjax::builders {

struct TrainingOptions {
  Pooling pooling = Pooling::MeanOverTime;
  float beta1 = 0.9F;  // as optax.adam
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  bool learns_bias = false;
};

struct AdamTensors {
  poplar::Tensor m, v;    // float [tiles, size]
  poplar::Tensor powers;  // float [tiles, 6 * 2]: the powers of beta1 and beta2, one pair per worker
};

struct TrainingTensors {
  NetworkTensors network;
  NetworkCotangents cotangents;
  std::vector<AdamTensors> weights;    // of each layer
  std::vector<AdamTensors> recurrent;  // likewise; empty tensors of a layer that is not
  std::vector<AdamTensors> biases;     // likewise, if they learn
  poplar::Tensor labels;               // unsigned [batch]
  poplar::Tensor loss;                 // float [batch]: its sum is the mean loss
  poplar::Tensor learning_rate;        // float [1]
};

struct TrainingStep {
  TrainingTensors tensors;
  poplar::program::Sequence prepare;  // once, before the first step: moments and gradients are 0
  poplar::program::Sequence step;
};

// The streams of `step`: kInputStream brings the history of the input lists, as of listsToHomes (not of dense inputs),
// kValueStream that of their values, if they have any, kLabelStream the labels unsigned [batch]; kLossStream takes the
// loss. The plan must keep its record and have a readout.
inline constexpr const char* kInputStream = "inputs";
inline constexpr const char* kValueStream = "values";
inline constexpr const char* kLabelStream = "labels";
inline constexpr const char* kLossStream = "loss";

TrainingStep addTrainingStep(poplar::Graph& graph, const NetworkPlan& plan, const TrainingOptions& options = {});

}  // namespace snnjax::builders
