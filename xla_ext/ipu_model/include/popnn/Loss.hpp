// Losses of classes, their gradients, and how many rows are right.
#pragma once

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

namespace popnn {

enum LossType { SUM_SQUARED_LOSS, CROSS_ENTROPY_LOSS };

// A row whose label is this one has no loss and no gradient, and is not counted.
constexpr unsigned MASKED_LABEL_CODE = 0xffffffffU;

// Of outputs y {batch, classes} (float or half) and labels (int or unsigned int, {batch}), with o the one-hot row of a
// label: loss {batch} and its gradient deltas {batch, classes}.
//   SUM_SQUARED_LOSS: sum (y - o)^2 / 2 and y - o, of y.
//   CROSS_ENTROPY_LOSS: y is a softmax's output; -log y[label] and y - o, of the softmax's input.
poplar::program::Program calcLoss(poplar::Graph& graph, const poplar::Tensor& model_outputs,
                                  const poplar::Tensor& expected, const poplar::Tensor& loss,
                                  const poplar::Tensor& deltas, LossType type, const poplar::DebugContext& debug = {},
                                  const poplar::OptionFlags& options = {});
// Besides, num_correct, a scalar of type unsigned int, becomes the number of rows whose first largest output is the
// label's.
poplar::program::Program calcLoss(poplar::Graph& graph, const poplar::Tensor& model_outputs,
                                  const poplar::Tensor& expected, const poplar::Tensor& loss,
                                  const poplar::Tensor& deltas, const poplar::Tensor& num_correct, LossType type,
                                  const poplar::DebugContext& debug = {}, const poplar::OptionFlags& options = {});
poplar::program::Program calcAccuracy(poplar::Graph& graph, const poplar::Tensor& model_outputs,
                                      const poplar::Tensor& expected, const poplar::Tensor& num_correct,
                                      const poplar::DebugContext& debug = {});

// The first place of the largest, or smallest, element of each row of {batch, classes}: unsigned int, {batch}.
poplar::Tensor argMax(poplar::Graph& graph, const poplar::Tensor& input, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debug = {});
poplar::Tensor argMin(poplar::Graph& graph, const poplar::Tensor& input, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debug = {});

}  // namespace popnn
