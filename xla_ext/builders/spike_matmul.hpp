// `spike_matmul` on tiles: each tile holds some columns of the weights and computes them for all rows of the batch, so
// that only ids and values travel forward, and partial sums of d_values back. Defined by snnjax/ops/spike_matmul.py.
#pragma once

#include "builders/vertices.hpp"

namespace snnjax::builders {

struct SpikeMatmulOptions {
  unsigned rows = 0, capacity = 0, num_inputs = 0, outputs = 0;
  bool half_weights = false;
  bool long_ids = false;  // int, beyond 65,535 inputs; else unsigned short
};

// Of the product, or of one of its gradients: then `out` is a cotangent, and `values` or `weights` the gradient.
struct SpikeMatmulTensors {
  TileRange tiles;  // of the outputs
  Tensor ids;       // [rows, capacity], rows spread over all tiles; ids out of range name nothing
  Tensor values;    // weights' type [rows, capacity], likewise
  Tensor weights;   // or float, as a gradient: [tiles, (num_inputs + 1) * columns]; a block is row-major, its
                    // last row 0, or scratch
  Tensor out;       // weights' type [tiles, rows * columns]
};

// The outputs that each tile holds.
TileRange tilesOf(const SpikeMatmulOptions& options, unsigned num_tiles);

// Given weights, or a gradient of them, are used in place; if not valid, they are a variable of this type.
SpikeMatmulTensors addSpikeMatmulTensors(Graph& graph, const SpikeMatmulOptions& options, const Type& weights_type,
                                         const Tensor& weights);

Sequence addSpikeMatmul(Graph& graph, const SpikeMatmulOptions& options, const SpikeMatmulTensors& tensors);
Sequence addSpikeMatmulValuesGradient(Graph& graph, const SpikeMatmulOptions& options,
                                      const SpikeMatmulTensors& tensors);
Sequence addSpikeMatmulWeightsGradient(Graph& graph, const SpikeMatmulOptions& options,
                                       const SpikeMatmulTensors& tensors);

}  // namespace snnjax::builders
