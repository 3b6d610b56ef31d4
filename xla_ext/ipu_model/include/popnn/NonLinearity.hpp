// Non-linear functions, forward and backward.
#pragma once

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <popnn/NonLinearityDef.hpp>

namespace popnn {

// f(t): in place, or as a new tensor. `t` is float or half; a softmax is of each row of the last dimension.
void nonLinearityInPlace(poplar::Graph& graph, NonLinearityType type, poplar::Tensor t, poplar::program::Sequence& prog,
                         const poplar::DebugContext& debug = {}, const poplar::OptionFlags& options = {});
poplar::Tensor nonLinearity(poplar::Graph& graph, NonLinearityType type, poplar::Tensor t,
                            poplar::program::Sequence& prog, const poplar::DebugContext& debug = {},
                            const poplar::OptionFlags& options = {});

// The gradient of the input of f. `act` is f's output; of GELU and SWISH, which cannot be told from it, f's input.
poplar::Tensor nonLinearityInputGradient(poplar::Graph& graph, NonLinearityType type, poplar::Tensor act,
                                         poplar::Tensor out_gradient, poplar::program::Sequence& prog,
                                         const poplar::DebugContext& debug = {},
                                         const poplar::OptionFlags& options = {});

#define SNNJAX_NON_LINEARITY(fn, TYPE)                                                                        \
  inline poplar::Tensor fn(poplar::Graph& graph, poplar::Tensor t, poplar::program::Sequence& prog,           \
                           const poplar::DebugContext& debug = {}, const poplar::OptionFlags& options = {}) { \
    return nonLinearity(graph, NonLinearityType::TYPE, t, prog, debug, options);                              \
  }                                                                                                           \
  inline void fn##InPlace(poplar::Graph& graph, poplar::Tensor t, poplar::program::Sequence& prog,            \
                          const poplar::DebugContext& debug = {}, const poplar::OptionFlags& options = {}) {  \
    nonLinearityInPlace(graph, NonLinearityType::TYPE, t, prog, debug, options);                              \
  }
SNNJAX_NON_LINEARITY(sigmoid, SIGMOID)
SNNJAX_NON_LINEARITY(relu, RELU)
SNNJAX_NON_LINEARITY(tanh, TANH)
SNNJAX_NON_LINEARITY(gelu, GELU)
SNNJAX_NON_LINEARITY(softmax, SOFTMAX)
SNNJAX_NON_LINEARITY(softmaxStable, SOFTMAX_STABLE)
#undef SNNJAX_NON_LINEARITY

}  // namespace popnn
