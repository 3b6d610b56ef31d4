// The k largest, or smallest, values along the last dimension. Ties go to the smaller index.
#pragma once

#include <iosfwd>
#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <popops/SortOrder.hpp>
#include <utility>
#include <vector>

namespace popops {

struct TopKParams {
  unsigned k;           // at most the size of the last dimension
  bool largest;         // else the smallest
  SortOrder sortOrder;  // of the result
  bool stableSort = true;

  TopKParams(unsigned count, bool take_largest, SortOrder order, bool stable = true) noexcept
      : k(count), largest(take_largest), sortOrder(order), stableSort(stable) {}
};

std::ostream& operator<<(std::ostream& stream, const TopKParams& params);

// The k values and their indices (UNSIGNED_INT) in the last dimension.
std::pair<poplar::Tensor, poplar::Tensor> topKWithPermutation(poplar::Graph& graph, poplar::program::Sequence& prog,
                                                              const poplar::Tensor& t, const TopKParams& params,
                                                              const poplar::DebugContext& debug = {});

}  // namespace popops
