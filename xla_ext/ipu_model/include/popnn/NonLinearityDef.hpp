// The non-linear functions of a layer.
#pragma once

namespace popnn {

// GELU is the form with a tanh. A softmax is of the last dimension, and subtracts the maximum of it first: SOFTMAX and
// SOFTMAX_STABLE are one. SOFTMAX_SCALED is refused.
enum class NonLinearityType { SIGMOID, HARD_SIGMOID, RELU, TANH, GELU, SWISH, SOFTMAX, SOFTMAX_STABLE, SOFTMAX_SCALED };

}  // namespace popnn
