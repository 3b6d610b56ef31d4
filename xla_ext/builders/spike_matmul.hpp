// `spike_matmul` on tiles: each tile holds some columns of the weights and computes them for all rows of the batch, so
// that only ids and values travel forward, and partial sums of d_values back. Defined by snnjax/ops/spike_matmul.py.
#pragma once

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

#include "spread.hpp"

namespace snnjax::builders {

struct SpikeMatmulOptions {
  unsigned rows = 0;
  unsigned capacity = 0;
  unsigned num_inputs = 0;
  unsigned outputs = 0;
  bool half_weights = false;
  bool long_ids = false;  // int, beyond 65,535 inputs; else unsigned short
};

// The tensors that a program uses; others are omitted.
struct SpikeMatmulUse {
  bool values = true, weights = true, out = true;        // of the tensors
  bool values_gradient = true, weights_gradient = true;  // of the cotangents
};

struct SpikeMatmulTensors {
  TileRange tiles;         // of the outputs
  poplar::Tensor ids;      // [rows, capacity], rows spread over all tiles; ids out of range name nothing
  poplar::Tensor values;   // weights' type [rows, capacity], likewise
  poplar::Tensor weights;  // [tiles, (num_inputs + 1) * columns]; a block is row-major, its last row is 0
  poplar::Tensor out;      // weights' type [tiles, rows * columns]
};

struct SpikeMatmulCotangents {
  poplar::Tensor g;          // in: weights' type [tiles, rows * columns]
  poplar::Tensor d_values;   // out: weights' type [rows, capacity]
  poplar::Tensor d_weights;  // out: float [tiles, (num_inputs + 1) * columns]; the last row of a block is scratch
};

// The outputs that each tile holds.
TileRange tilesOf(const SpikeMatmulOptions& options, unsigned num_tiles);

SpikeMatmulTensors addSpikeMatmulTensors(poplar::Graph& graph, const SpikeMatmulOptions& options,
                                         const SpikeMatmulUse& use = {});

poplar::program::Sequence addSpikeMatmul(poplar::Graph& graph, const SpikeMatmulOptions& options,
                                         const SpikeMatmulTensors& tensors);

SpikeMatmulCotangents addSpikeMatmulCotangents(poplar::Graph& graph, const SpikeMatmulOptions& options,
                                               const SpikeMatmulTensors& tensors, const SpikeMatmulUse& use = {});

// The gradients of which there are tensors.
poplar::program::Sequence addSpikeMatmulBackward(poplar::Graph& graph, const SpikeMatmulOptions& options,
                                                 const SpikeMatmulTensors& tensors,
                                                 const SpikeMatmulCotangents& cotangents);

}  // namespace snnjax::builders
