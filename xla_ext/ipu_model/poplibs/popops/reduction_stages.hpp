// The stages of a reduction as compute sets.
#pragma once

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Type.hpp>
#include <popops/Operation.hpp>
#include <string>
#include <vector>

namespace poplibs {

// Empty: there is no codelet for this operation on these types.
std::string reduceCodelet(popops::Operation op, const poplar::Type& in, const poplar::Type& out);

// Reduces matrix [reduced, outputs], of at least one row, to out [outputs]: stage i goes to stages[i], which is added
// where it is missing, so that several reductions may share compute sets. Sums of halves are kept as float in between.
void addReductionStages(poplar::Graph& graph, const poplar::Tensor& matrix, const poplar::Tensor& out,
                        popops::Operation op, std::vector<poplar::ComputeSet>& stages,
                        const poplar::DebugContext& debug);

}  // namespace poplibs
