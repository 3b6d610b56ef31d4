// A network without recurrent layers as a scan: each layer runs over all steps before the next one. Tensors of "rows"
// have one for each sample and step: [batch, num_steps].
#pragma once

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
// float [blocks, elements], each block in such parts on its tiles.
poplar::Tensor addSpread(poplar::Graph& graph, const LayerPlan& layer, std::size_t elements, const std::string& name);

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
std::vector<State> rowStates(const ScanTile& at);

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
