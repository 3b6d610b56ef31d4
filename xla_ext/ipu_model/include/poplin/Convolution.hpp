// Convolutions, as products of the kernel with the patches that it lies on, one matMul a group.
#pragma once

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <poplin/ConvParams.hpp>
#include <poplin/MatMul.hpp>

namespace poplin {

// An input {batch, groups * channels, field...}, weights {groups, output channels, input channels, kernel...} and a
// bias for each output channel, spread over the tiles.
poplar::Tensor createInput(poplar::Graph& graph, const ConvParams& params, const poplar::DebugContext& debug = {},
                           const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);
poplar::Tensor createWeights(poplar::Graph& graph, const ConvParams& params, const poplar::DebugContext& debug = {},
                             const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);
poplar::Tensor createBiases(poplar::Graph& graph, const poplar::Tensor& activations,
                            const poplar::DebugContext& debug = {}, const poplar::OptionFlags& options = {});

// The output {batch, groups * channels, field...}; the kernel is not reversed. With `transposeAndFlipWeights` the
// channels of `weights` change places and the kernel is reversed, as the gradient of an input needs. Options are those
// of matMul.
poplar::Tensor convolution(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Tensor& weights,
                           const ConvParams& params, bool transposeAndFlipWeights, poplar::program::Sequence& prog,
                           const poplar::DebugContext& debug = {}, const poplar::OptionFlags& options = {},
                           PlanningCache* cache = nullptr);

// Adds to each channel of {batch, channels, field...} its bias.
void addBias(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Tensor& biases,
             poplar::program::Sequence& prog, const poplar::DebugContext& debug = {},
             const poplar::OptionFlags& options = {});

}  // namespace poplin
