// Slices at a position known only at run time. Tensors made by createSliceableTensor have all elements of a sliced
// dimension on one tile, so that a slice needs no exchange except of its offset.
#pragma once

#include <cstddef>
#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <vector>

namespace popops {

poplar::Tensor createSliceableTensor(poplar::Graph& graph, const poplar::Type& type,
                                     const std::vector<std::size_t>& shape, const std::vector<std::size_t>& dims,
                                     const std::vector<std::size_t>& sizes, std::size_t min_grain_size = 0,
                                     const poplar::DebugContext& debug = {});

// {num_indices, t's shape with dims of the given sizes}, on the tiles of `t`.
poplar::Tensor createSliceTensor(poplar::Graph& graph, const poplar::Tensor& t, const std::vector<std::size_t>& dims,
                                 const std::vector<std::size_t>& sizes, std::size_t num_indices,
                                 const poplar::DebugContext& debug = {});

// The part of `t` that starts at offset[i] in dimension dims[i] and has sizes[i] elements there, wrapping around at the
// end of the dimension.
poplar::Tensor dynamicSlice(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& offset,
                            const std::vector<std::size_t>& dims, const std::vector<std::size_t>& sizes,
                            poplar::program::Sequence& prog, const poplar::DebugContext& debug = {});
void dynamicSliceWithOutput(poplar::Graph& graph, const poplar::Tensor& output, const poplar::Tensor& t,
                            const poplar::Tensor& offset, const std::vector<std::size_t>& dims,
                            const std::vector<std::size_t>& sizes, poplar::program::Sequence& prog,
                            const poplar::DebugContext& debug = {});

// Puts `s` into that part of `t`.
void dynamicUpdate(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& s, const poplar::Tensor& offset,
                   const std::vector<std::size_t>& dims, const std::vector<std::size_t>& sizes,
                   poplar::program::Sequence& prog, const poplar::DebugContext& debug = {});

}  // namespace popops
