// A network as a scan: each layer runs over all steps before the next one. Tensors of "rows" have one for each sample
// and step: [batch, num_steps].
#pragma once

#include <functional>

#include "lif_network.hpp"
#include "vertices.hpp"

namespace snnjax::builders {

poplar::program::Sequence addScanForward(poplar::Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors);
poplar::program::Sequence addScanBackward(poplar::Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors,
                                          const NetworkCotangents& cotangents);

// float [blocks, batch * num_steps * width], on the tiles that work for the samples.
poplar::Tensor addScanRows(poplar::Graph& graph, const NetworkPlan& plan, std::size_t layer, std::size_t width,
                           const std::string& name);
// The part of a block of so many elements that the tile of a group takes.
struct Part {
  std::size_t first = 0, last = 0;
};
Part partOf(const LayerPlan& layer, std::size_t elements, std::size_t group);
// [blocks, elements], each block in such parts on its tiles.
poplar::Tensor addSpread(poplar::Graph& graph, const poplar::Type& type, const LayerPlan& layer, std::size_t elements,
                         const std::string& name);

// A tile of a layer in a scan, and its parts of tensors.
struct ScanTile {
  const NetworkPlan& plan;
  std::size_t l;
  unsigned block;
  std::size_t group;

  const LayerPlan& layer() const { return plan.layers[l]; }
  unsigned tile() const { return layer().tileOf(block, group); }
  unsigned samples() const { return layer().sample_groups[group].count; }
  unsigned rows() const { return samples() * plan.options.num_steps; }

  // Of rows [blocks, batch * num_steps * width].
  poplar::Tensor ownRows(const poplar::Tensor& rows) const;
  // Of states [blocks, rows * batch * columns].
  poplar::Tensor ownStates(const poplar::Tensor& states) const;
  // Of what has a row for each sample and step at the homes: [batch * num_steps * width].
  poplar::Tensor fromHomes(const poplar::Tensor& rows) const;
  // Of [batch].
  poplar::Tensor ofSamples(const poplar::Tensor& tensor) const;
};

// Calls add(ScanTile) for all tiles of a layer.
template <typename Add>
void forEachTile(const NetworkPlan& plan, std::size_t l, Add&& add) {
  for (unsigned p = 0; p < plan.layers[l].tiles.count; ++p) {
    for (std::size_t g = 0; g < plan.layers[l].sample_groups.size(); ++g) add(ScanTile{plan, l, p, g});
  }
}

// The records that a layer reads, at their homes, and their values: of dense inputs the nonzero ones.
const poplar::Tensor& recordsOf(const NetworkPlan& plan, const NetworkTensors& tensors, std::size_t l);
const poplar::Tensor& valuesOf(const NetworkPlan& plan, const NetworkTensors& tensors, std::size_t l);

// The columns of the weights with all that reads a list of rows with them.
std::vector<State> rowStates(const ScanTile& at, const ListPlan& list);

// What the selection reads: rows of float [blocks, batch * num_steps * columns].
struct Selectable {
  poplar::Tensor v, raise;
};
// Of a vertex that advances a readout or neurons, with the currents of all steps.
std::vector<Field> leakyFields(const ScanTile& at, const NetworkTensors& tensors, const poplar::Tensor& current);
std::vector<State> leakyStates(const ScanTile& at);
std::vector<Field> neuronFields(const ScanTile& at, const NetworkTensors& tensors, const poplar::Tensor& current,
                                const Selectable& selectable);
std::vector<State> neuronStates(const ScanTile& at);

// Likewise backward, without the gradients of spikes that a vertex of neurons reads, or of outputs.
std::vector<Field> leakyGradientFields(const ScanTile& at, const NetworkTensors& tensors,
                                       const NetworkCotangents& cotangents, const poplar::Tensor& g_current);
std::vector<Field> gradientFields(const ScanTile& at, const NetworkTensors& tensors,
                                  const NetworkCotangents& cotangents, const poplar::Tensor& g_current);
std::vector<State> gradientStates(const ScanTile& at);

// Lists that a tile reads, as fields and states of RowsGradient, with the gradients of their currents.
struct RowsRead {
  bool valued;
  std::function<std::vector<Field>(const ScanTile&)> fields;
  std::function<std::vector<State>(const ScanTile&)> states;
};
// The gradients of weights of a layer, of all lists together, to `to` [blocks, (inputs + 1) * columns]: each group sums
// over its samples; then each of a block's tiles sums a part over the groups.
poplar::program::Sequence addWeightsGradient(poplar::Graph& graph, const NetworkPlan& plan, std::size_t layer,
                                             const std::vector<RowsRead>& lists, const poplar::Tensor& to,
                                             const std::string& what);

// The step of a vertex that is at the first of one: 0 on every tile.
class NoClock {
 public:
  NoClock(poplar::Graph& graph, const NetworkPlan& plan);
  poplar::Tensor at(unsigned tile) const { return zeros_[tile]; }

 private:
  poplar::Tensor zeros_;
};

// The nonzero ones of dense inputs, where inputs are dense.
poplar::program::Sequence listDenseInputs(poplar::Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors,
                                          const NoClock& no_clock);

}  // namespace snnjax::builders
