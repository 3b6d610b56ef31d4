// Convolutions of many rows of spikes, as one call of `spike_conv` needs them: each row sparse or dense, whichever is
// faster for its number of entries.
#pragma once

#include "convolution.hpp"
#include "cpu/parallel.hpp"
#include "list_products.hpp"

namespace snnjax {

// out[r] = the convolution of row r, [rows, numInputs()] to [rows, numOutputs()]. What is not listed adds nothing,
// whatever the weights hold. `in_place`: the rows themselves where they lie densely as float32, or nullptr.
void convolve(const ListedRows& spikes, Rows<const float> in_place, const ConvolutionShape& shape,
              const Numbers& weights, const WritableNumbers& out, const Threads& threads);

// out[r, slot] = the cotangent of the input in each listed slot of `capacity`, and 0 for all others; g is
// [rows, numOutputs()].
void convolveToSlots(const ListedRows& spikes, Index capacity, const ConvolutionShape& shape, const Numbers& weights,
                     const Numbers& g, const WritableNumbers& out, const Threads& threads);

// out[r] = the cotangents of all inputs.
void convolveToInputs(Index rows, const ConvolutionShape& shape, const Numbers& weights, const Numbers& g,
                      const WritableNumbers& out, const Threads& threads);

// out = the gradient of the weights, a sum over the patches of all spikes: in chunks that depend on the number of rows
// alone.
void convolveToWeights(const ListedRows& spikes, Rows<const float> in_place, const ConvolutionShape& shape,
                       const Numbers& g, const WritableNumbers& out, const Threads& threads);

}  // namespace snnjax
