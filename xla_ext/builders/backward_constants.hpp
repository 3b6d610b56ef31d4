// Gradients of a layer's constants and of its first membranes.
#pragma once

#include <poplar/Program.hpp>
#include <vector>

#include "lif_network.hpp"
#include "loop.hpp"
#include "vertices.hpp"

namespace snnjax::builders {

// The states of a vertex that differentiates the spike and the reset.
std::vector<State> surrogateStates(const NeuronOptions& neuron);

// Where vertices that run once add what first or last states mean to the gradients of the threshold and of its coupling
// to the second state: float [tiles, batch * columns]; unused where the layer learns no constants.
struct ConstantsShare {
  poplar::Tensor g_threshold, g_coupling;
};
ConstantsShare constantsShare(poplar::Graph& graph, const NetworkPlan& plan, std::size_t l,
                              const LayerCotangents& cotangents);

// Adds to the gradients of the constants in the first set, beside the vertices that make the membrane
// gradient, with their own membrane gradient, because a vertex cannot read another's in the same set. Returns what must
// run before the loop.
poplar::program::Sequence addConstantsGradient(Loop& loop, std::size_t l, const poplar::Tensor& g_spikes,
                                               const LayerCotangents& cotangents);

// The same for the readout `l`: decay and gain.
poplar::program::Sequence addReadoutConstantsGradient(Loop& loop, std::size_t l, const LayerCotangents& cotangents);

// After the loop: the gradients of the first states of all layers but the readout, and their share of the thresholds'.
poplar::program::Sequence addFirstGradient(Loop& loop, const NetworkCotangents& cotangents);

}  // namespace snnjax::builders
