// One-hot rows and ranges of numbers.
#pragma once

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

namespace popops {

// encoded[i][j] = (indices[i] == j). `encoded` is {indices.numElements(), classes} of any type; an index outside the
// classes gives a row of zeros.
void encodeOneHot(poplar::Graph& graph, const poplar::Tensor& indices, const poplar::Tensor& encoded,
                  poplar::program::Sequence& prog, const poplar::DebugContext& debug = {});
// The same with the scalars `on` and `off` in place of 1 and 0.
void encodeOneHot(poplar::Graph& graph, const poplar::Tensor& indices, const poplar::Tensor& encoded,
                  poplar::program::Sequence& prog, const poplar::Tensor& on, const poplar::Tensor& off,
                  const poplar::DebugContext& debug = {});

// t[i] = start + i, for a tensor of rank 1 and type FLOAT, HALF, INT or UNSIGNED_INT.
void iota(poplar::Graph& graph, const poplar::Tensor& t, unsigned start_integer, poplar::program::Sequence& prog,
          const poplar::DebugContext& debug = {});
void iota(poplar::Graph& graph, const poplar::Tensor& t, int start_integer, poplar::program::Sequence& prog,
          const poplar::DebugContext& debug = {});

}  // namespace popops
