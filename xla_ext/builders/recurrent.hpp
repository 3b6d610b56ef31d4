// A recurrent layer in a scan: a loop over the steps of its neurons, between products that take all steps at once.
#pragma once

#include <map>

#include "loop.hpp"
#include "scan.hpp"

namespace snnjax::builders {

// The iterations of a loop, counted on each tile.
class Iterations {
 public:
  Iterations(poplar::Graph& graph, const NetworkPlan& plan, const std::string& name);
  poplar::Tensor at(unsigned tile) const { return counters_[tile]; }
  // Counts on the tiles of a layer in a compute set that does not read them.
  void advance(poplar::Graph& graph, poplar::ComputeSet set, const LayerPlan& layer) const;
  poplar::program::Program reset() const;

 private:
  poplar::Tensor counters_, start_;
};

// What the vertices of a loop read in every step, where they read it: constants of neurons and the ends of sequences.
class ReadInLoop {
 public:
  ReadInLoop(poplar::Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors, std::size_t layer,
             const std::string& name);
  // The fields of a vertex with these in place of those elsewhere.
  std::vector<Field> placed(const ScanTile& at, std::vector<Field> fields) const;
  const poplar::program::Sequence& program() const { return program_; }

 private:
  std::map<std::string, std::vector<poplar::Tensor>> of_groups_;  // [blocks, elements], by field
  poplar::program::Sequence program_;
};

// Recurrent weights go to all tiles of a layer.
poplar::program::Sequence copyRecurrent(const LayerTensors& tensors);

// The steps of neurons with `current`, rows of all steps; `selectable` is filled.
poplar::program::Sequence addRecurrentForward(poplar::Graph& graph, const NetworkPlan& plan,
                                              const NetworkTensors& tensors, std::size_t layer,
                                              const poplar::Tensor& current, const Selectable& selectable);

// Backward: from the gradients of own spikes to those of the currents, both rows of all steps, and of the weights.
poplar::program::Sequence addRecurrentBackward(poplar::Graph& graph, const NetworkPlan& plan,
                                               const NetworkTensors& tensors, const NetworkCotangents& cotangents,
                                               std::size_t layer, const poplar::Tensor& g_spikes,
                                               const poplar::Tensor& g_current);

// The spikes that a state carries. Before the forward loop: what those before the first step add to the current in that
// step; they are the last ones of sequences without steps. After it: those of the last step.
poplar::program::Sequence addFirstSpikesOfScan(poplar::Graph& graph, const NetworkPlan& plan,
                                               const NetworkTensors& tensors, std::size_t layer);
poplar::program::Sequence addLastSpikesOfScan(poplar::Graph& graph, const NetworkPlan& plan,
                                              const NetworkTensors& tensors, std::size_t layer);
// Before the backward loop the gradient of the last spikes joins that of the last membranes (and of the threshold);
// after it the gradient of the first ones follows from that of the currents, and they are one more list for the
// weights'.
poplar::program::Sequence addLastSpikesGradientOfScan(poplar::Graph& graph, const NetworkPlan& plan,
                                                      const NetworkTensors& tensors, std::size_t layer,
                                                      const LayerCotangents& cotangents);
poplar::program::Sequence addFirstSpikesGradientOfScan(poplar::Graph& graph, const NetworkPlan& plan,
                                                       const NetworkTensors& tensors, std::size_t layer,
                                                       const LayerCotangents& cotangents,
                                                       const poplar::Tensor& g_current);
RowsRead readFirstSpikes(poplar::Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors,
                         std::size_t layer, const poplar::Tensor& g_current);
// The record that lists all neurons.
poplar::Tensor addRecordOfAll(poplar::Graph& graph, const ListPlan& list);

}  // namespace snnjax::builders
