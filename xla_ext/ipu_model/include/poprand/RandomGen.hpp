// Random tensors. With a seed {2} of UNSIGNED_INT the numbers are a function of seed, modifier and place alone. Without
// one they come from a state that `setSeed` sets and that every draw moves on.
#pragma once

#include <cstdint>
#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

namespace poprand {

// A new tensor with the shape and the tile mapping of `reference`; float, half or int. Real numbers lie in
// [min_value, max_value), integers in [min_value, max_value].
poplar::Tensor uniform(poplar::Graph& graph, const poplar::Tensor* master_seed, std::uint32_t seed_modifier,
                       const poplar::Tensor& reference, const poplar::Type& out_type, double min_value,
                       double max_value, poplar::program::Sequence& prog, const poplar::DebugContext& debug = {});

// 1 with the given probability, else 0; float, half or int.
poplar::Tensor bernoulli(poplar::Graph& graph, const poplar::Tensor* master_seed, std::uint32_t seed_modifier,
                         const poplar::Tensor& reference, const poplar::Type& out_type, double probability,
                         poplar::program::Sequence& prog, const poplar::DebugContext& debug = {});

poplar::Tensor normal(poplar::Graph& graph, const poplar::Tensor* master_seed, std::uint32_t seed_modifier,
                      const poplar::Tensor& reference, const poplar::Type& out_type, double mean,
                      double standard_deviation, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debug = {});

// Only numbers within alpha standard deviations of the mean.
poplar::Tensor truncatedNormal(poplar::Graph& graph, const poplar::Tensor* master_seed, std::uint32_t seed_modifier,
                               const poplar::Tensor& reference, const poplar::Type& out_type, double mean,
                               double standard_deviation, double alpha, poplar::program::Sequence& prog,
                               const poplar::DebugContext& debug = {});

// Each element times `scale` with the probability `keep_probability`, else 0.
poplar::Tensor dropout(poplar::Graph& graph, const poplar::Tensor* seed, std::uint32_t seed_modifier,
                       const poplar::Tensor& input, const poplar::Tensor& reference, double keep_probability,
                       double scale, poplar::program::Sequence& prog, const poplar::DebugContext& debug = {});

// Starts the draws without a seed again from this one.
void setSeed(poplar::Graph& graph, const poplar::Tensor& master_seed, std::uint32_t seed_modifier,
             poplar::program::Sequence& prog, const poplar::DebugContext& debug = {});

}  // namespace poprand
