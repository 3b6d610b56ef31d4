// Partitions of regions between workers or tiles, index arithmetic, duplicates of tensors.
#pragma once

#include <climits>
#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Interval.hpp>
#include <poplar/Program.hpp>
#include <poplar/Target.hpp>
#include <poplar/Tensor.hpp>
#include <vector>

namespace poputil {

using Regions = std::vector<poplar::Interval>;
using RegionSequences = std::vector<Regions>;

// Sorts the regions and joins those that touch.
void mergeAdjacentRegions(Regions& regions);
void mergeAdjacentRegions(RegionSequences& mapping);

// Divides the regions into at most max_partitions parts of nearly equal size, in order, in whole grains; regions are
// cut where that balances. A part has at least min_elements_per_partition elements, unless there are no more, and no
// region in it is longer than max_elements_per_region. max_elements_per_partition may raise the number of parts.
std::vector<Regions> splitRegions(const Regions& regions, unsigned grain_size, unsigned max_partitions,
                                  unsigned min_elements_per_partition = 0,
                                  unsigned max_elements_per_partition = UINT_MAX,
                                  unsigned max_elements_per_region = UINT_MAX);

// The same for sequences of regions: no part joins regions of two sequences into one.
std::vector<RegionSequences> splitRegions(const RegionSequences& sequences, unsigned grain_size,
                                          unsigned max_partitions, unsigned min_elements_per_partition = 0,
                                          unsigned max_elements_per_partition = UINT_MAX,
                                          unsigned max_elements_per_region = UINT_MAX);

// splitRegions with one part for each worker of a tile.
std::vector<Regions> splitRegionsBetweenWorkers(const poplar::Target& target, const Regions& regions,
                                                unsigned grain_size, unsigned min_elements_per_partition = 0,
                                                unsigned max_elements_per_partition = UINT_MAX,
                                                unsigned max_elements_per_region = UINT_MAX);
std::vector<RegionSequences> splitRegionsBetweenWorkers(const poplar::Target& target, const RegionSequences& sequences,
                                                        unsigned grain_size, unsigned min_elements_per_partition = 0,
                                                        unsigned max_elements_per_partition = UINT_MAX,
                                                        unsigned max_elements_per_region = UINT_MAX);

// Row-major index arithmetic; throws poplibs_error for an index outside the shape.
std::vector<std::size_t> unflattenIndex(const std::vector<std::size_t>& shape, std::size_t index);
std::size_t flattenIndex(const std::vector<std::size_t>& shape, const std::vector<std::size_t>& indices);

std::size_t intervalSequenceNumElements(const RegionSequences& sequences);

// A new tensor with the values of `in`, filled by `prog`.
poplar::Tensor duplicate(poplar::Graph& graph, const poplar::Tensor& in, poplar::program::Sequence& prog,
                         const poplar::DebugContext& debug = {},
                         poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);

// `count` clones of t, stacked along a new first dimension.
poplar::Tensor cloneN(poplar::Graph& graph, const poplar::Tensor& t, unsigned count,
                      const poplar::DebugContext& debug = {},
                      poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);

}  // namespace poputil
