// Slices at a position known only at run time. Tensors made by createSliceableTensor have all elements of a sliced
// dimension on one tile, so that a slice needs no exchange except of its offset.
#pragma once

#include <cstddef>
#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <vector>

namespace popops {

// How slices and updates are done. The model has one way, so a plan holds nothing.
class SlicePlan {
 public:
  friend bool operator==(const SlicePlan&, const SlicePlan&) noexcept { return true; }
  friend bool operator!=(const SlicePlan&, const SlicePlan&) noexcept { return false; }
  friend bool operator<(const SlicePlan&, const SlicePlan&) noexcept { return false; }
};

poplar::Tensor createSliceableTensor(poplar::Graph& graph, const poplar::Type& type,
                                     const std::vector<std::size_t>& shape, const std::vector<std::size_t>& dims,
                                     const std::vector<std::size_t>& sizes, std::size_t min_grain_size = 0,
                                     const poplar::DebugContext& debug = {});
poplar::Tensor createSliceableTensor(poplar::Graph& graph, const poplar::Type& type,
                                     const std::vector<std::size_t>& shape, const std::vector<std::size_t>& dims,
                                     const std::vector<std::size_t>& sizes, const SlicePlan& plan,
                                     const poplar::OptionFlags& options, const poplar::DebugContext& debug = {});

// {num_indices, t's shape with dims of the given sizes}, on the tiles of `t`.
poplar::Tensor createSliceTensor(poplar::Graph& graph, const poplar::Tensor& t, const std::vector<std::size_t>& dims,
                                 const std::vector<std::size_t>& sizes, std::size_t num_indices,
                                 const poplar::DebugContext& debug = {});
poplar::Tensor createSliceTensor(poplar::Graph& graph, const poplar::Type& type, const std::vector<std::size_t>& shape,
                                 const std::vector<std::size_t>& dims, const std::vector<std::size_t>& sizes,
                                 std::size_t num_indices, const SlicePlan& plan, const poplar::OptionFlags& options,
                                 const poplar::DebugContext& debug = {});

// {num_indices, dims.size()} of UNSIGNED_INT.
poplar::Tensor createIndicesTensor(poplar::Graph& graph, const std::vector<std::size_t>& dims, std::size_t num_indices,
                                   const SlicePlan& plan, const poplar::OptionFlags& options,
                                   const poplar::DebugContext& debug = {});

// A tensor from which slices like `s` come: dimension dims[i] has num_slices[i] times the size of that of s.
poplar::Tensor createSliceableTensorFromSlice(poplar::Graph& graph, const poplar::Tensor& s,
                                              const std::vector<std::size_t>& dims,
                                              const std::vector<std::size_t>& num_slices,
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

// Slices of one dimension (dims and sizes have one entry, of size 1) at several offsets {n, 1} of UNSIGNED_INT: out[i]
// = t[offsets[i]]. Those outside the dimension are left out.
poplar::Tensor multiSlice(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& offsets,
                          const std::vector<std::size_t>& dims, const std::vector<std::size_t>& sizes,
                          poplar::program::Sequence& prog, const SlicePlan& plan, const poplar::OptionFlags& options,
                          const poplar::DebugContext& debug = {});

// t[offsets[i]] = s[i]
void multiUpdate(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& s, const poplar::Tensor& offsets,
                 const std::vector<std::size_t>& dims, const std::vector<std::size_t>& sizes,
                 poplar::program::Sequence& prog, const SlicePlan& plan, const poplar::OptionFlags& options,
                 const poplar::DebugContext& debug = {});

// t[offsets[i]] += scale * s[i]; `scale` is a scalar tensor.
void multiUpdateAdd(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& s,
                    const poplar::Tensor& offsets, const poplar::Tensor& scale, const std::vector<std::size_t>& dims,
                    const std::vector<std::size_t>& sizes, poplar::program::Sequence& prog, const SlicePlan& plan,
                    const poplar::OptionFlags& options, const poplar::DebugContext& debug = {});

namespace embedding {

SlicePlan plan(const poplar::Graph& graph, const poplar::Type& type, std::size_t num_entries, std::size_t output_size,
               const std::vector<std::size_t>& num_lookups, const poplar::OptionFlags& options);

}  // namespace embedding
}  // namespace popops
