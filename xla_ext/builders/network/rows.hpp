// A network layer by layer, each over a block of steps at once. Tensors of "rows" have one for each sample and step of
// a block: [batch, block_steps].
#pragma once

#include <array>

#include "builders/network/lif_network.hpp"

namespace snnjax::builders {

// Numbers that each tile counts for itself, so that a loop needs no exchange for them.
class Counter {
 public:
  Counter(Graph& graph, unsigned num_tiles, unsigned start, const std::string& name, unsigned each = 1);
  Tensor at(unsigned tile) const { return counters_[tile][0]; }
  // Of the workers of the tile, from `first` on.
  Tensor ofWorkers(unsigned tile, unsigned first) const { return counters_[tile].slice(first, first + kShares); }
  // Adds `by`, which may wrap around, on tiles [first, first + count) in a compute set that does not read it there.
  void advance(Graph& graph, ComputeSet set, unsigned first, unsigned count, unsigned by) const;
  // To its first number, from which it also starts.
  Program reset() const;

 private:
  Tensor counters_, start_;
};

// A pass over a network runs its blocks of steps in a loop, between programs that run once.
struct Pass {
  // Backward if there are cotangents.
  Pass(Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors,
       const NetworkCotangents* cotangents = nullptr);
  // All of it. Backward the blocks come from the last to the first.
  Sequence program() const;
  // The next compute set of the body; backward the first ones also take what follows from lists alone.
  ComputeSet addSet(const std::string& set);

  Graph& graph;
  const NetworkPlan& plan;
  const NetworkTensors& tensors;
  const NetworkCotangents* cotangents;
  std::string name;
  Counter block;              // its number
  std::vector<Tensor> zeros;  // before all others
  Sequence before, body, after;
  // Backward: from lists to bits, these turned, and the rows of each input, beside other work.
  std::vector<ComputeSet> of_lists;
  std::array<unsigned, 3> of_lists_placed = {};  // the vertices of each that have a tile
  std::size_t begun = 0;                         // of these sets
  // What sums up a narrow readout's gradient of its weights, after all else unless a set of the body takes it along.
  std::optional<ComputeSet> of_readout = {};
};

// A layer in a pass.
struct LayerPass {
  Pass& pass;
  std::size_t l;
  Graph& graph = pass.graph;
  const NetworkPlan& plan = pass.plan;
  const LayerPlan& layer = plan.layers[l];
  const LayerTensors& tensors = pass.tensors.layers[l];

  const LayerCotangents& cotangents() const { return pass.cotangents->layers[l]; }
  std::string name(const std::string& what) const { return pass.name + "/" + what + std::to_string(l); }
  ComputeSet addSet(const std::string& what) const { return pass.addSet(what + std::to_string(l)); }
  // float [blocks, batch * block_steps * width], on the tiles that work for the samples; "blocks" here are those of the
  // layer's neurons.
  Tensor addRows(std::size_t width, const std::string& name_of_rows) const;
};

// The part of a block of so many elements, whole rows of its columns, that the tile of a group takes: as many of all
// but the last row as others, which is the last group's.
struct Part {
  std::size_t first = 0, last = 0;
};
Part partOf(const LayerPlan& layer, std::size_t elements, std::size_t group);
// [blocks, elements], each block in such parts on its tiles; of blocks from `first` on.
Tensor addSpread(Graph& graph, const Type& type, const LayerPlan& layer, std::size_t elements, const std::string& name,
                 unsigned first = 0);
// The blocks of a matrix of so many rows, and a row more, of zeros at first: those of `given` as far as they are whole.
Tensor addMatrix(Graph& graph, const Type& type, const LayerPlan& layer, std::size_t rows, const Tensor& given,
                 const std::string& name);

// A tile of a layer, and its parts of tensors; none of a tensor that the layer does not have.
struct LayerTile {
  const LayerPass& of;
  unsigned block;
  std::size_t group;

  const LayerPlan& layer() const { return of.layer; }
  unsigned tile() const { return layer().tileOf(block, group); }
  unsigned samples() const { return layer().sample_groups[group].count; }
  unsigned rows() const { return samples() * of.plan.block_steps; }

  // Of what has parts for each sample, of one size: [blocks, batch * elements].
  Tensor ownRows(const Tensor& rows) const;
  // Of states [blocks, rows * batch * columns].
  Tensor ownStates(const Tensor& states) const;
  // Of what has rows for each sample at the homes, of all steps of a block or one: [batch * elements].
  Tensor fromHomes(const Tensor& rows) const;
  // Of what all groups have of their own, of one size: [blocks, groups * elements].
  Tensor ofGroup(const Tensor& constants) const;
  // The weights on this tile, or at least those of its block.
  Tensor weights() const;

 private:
  Tensor ofSamples(const Tensor& all) const;
};

// Some of the rows of a tile, and where their currents are summed.
struct RowPart {
  unsigned tile = 0, first = 0, count = 0;

  // Of what a tile has for each of its `rows` rows.
  Tensor of(const Tensor& all, unsigned rows) const;
};
std::vector<RowPart> rowPartsOf(const LayerTile& at);

// Calls add(LayerTile) for all tiles of a layer.
void forEachTile(const LayerPass& of, auto&& add) {
  for (unsigned p = 0; p < of.layer.tiles.count; ++p) {
    for (std::size_t g = 0; g < of.layer.sample_groups.size(); ++g) add(LayerTile{of, p, g});
  }
}

std::vector<State> rowStates(const LayerTile& at, const ListPlan& list);
std::vector<State> currentStates(const LayerTile& at, const ListPlan& list, unsigned rows);  // of so many

// What neurons offer to the homes of their lists (poplar_kernels/conventions.hpp): rows [blocks, batch * block_steps *
// offeredStride(columns)], and marks of pairs of neurons [blocks, batch * block_steps * columns / 2] before they are
// behind the membranes of these.
struct Offered {
  Tensor rows, marks;
};
// Of a vertex that advances neurons or, without what is offered, a readout, with the currents of a block of steps, the
// number of which it reads.
std::vector<Field> neuronFields(const LayerTile& at, const Tensor& current, const Offered& offered = {});
std::vector<State> neuronStates(const LayerTile& at);
// Likewise backward, without the gradients of spikes that a vertex of neurons reads, or of outputs.
std::vector<Field> gradientFields(const LayerTile& at, const Tensor& g_current);
std::vector<State> gradientStates(const LayerTile& at);
// Whether the vertices of a layer, backward, run once and start from sums of 0.
bool startsAlone(const LayerPass& of);
// Sums for the gradients of thresholds and, if requested, of their coupling to second states: unused ones where the
// layer learns no constants.
struct ThresholdSums {
  Tensor threshold, coupling;
};
ThresholdSums thresholdSums(const LayerPass& of, bool with_coupling);
// The states of a vertex that differentiates the spike and the reset.
std::vector<State> surrogateStates(const NeuronOptions& neuron);

// The same products with dense rows of the lists, on the matrix unit: the currents of all rows, [blocks, batch *
// block_steps * columns], and the gradient of the weights.
Sequence addUnitCurrents(const LayerPass& of, const Tensor& current);
Sequence addUnitGradient(const LayerPass& of, const Tensor& g_current);

// The gradient of a matrix of a layer, [blocks, (inputs + 1) * columns]: each group sums over its samples; then each of
// a block's tiles sums a part over the groups.
class WeightsGradient : LayerPass {
 public:
  WeightsGradient(const LayerPass& of, const Tensor& to, const std::string& what);
  // Of lists that each tile reads: fields and states of RowsGradient but for what it adds to.
  Program add(bool valued, const std::function<std::vector<Field>(const LayerTile&)>& fields,
              const std::function<std::vector<State>(const LayerTile&)>& states) const;
  Sequence sumGroups() const;

 private:
  Tensor to_;
  std::string what_;
  std::vector<Tensor> of_groups_;  // what each group sums up, 0 at first
};

// The gradient of the weights that read list `l`, whose entries have no values, or of those of the layer's own spikes
// of the step before, gathered by input.
void addGatheredGradient(const LayerPass& of, bool own, const Tensor& g_current, const Tensor& g_weights);

// Backward through a narrow readout, on the tiles of the neurons that it reads: from the gradients of its currents to
// those of its weights and of the neurons' spikes, [blocks, batch * block_steps * columns].
Tensor addReadoutBackward(Pass& pass, const Tensor& g_current);
// The gradient of its weights where it is made: [blocks of the readout, (inputs + 1) * columns].
Tensor addReadoutGradient(Graph& graph, const NetworkPlan& plan, const std::string& name);

// Where a gradient of a layer's matrix is made before it goes to `to`: there, if each of a block's tiles has a part of
// it.
Tensor spreadOverGroups(Graph& graph, const LayerPlan& layer, const Tensor& to, const std::string& name);

// The lists of a block that are in a history, of input events or of all layers, with their values, go to those of the
// block; of dense inputs, the nonzero ones are listed. All of it is at the homes.
Sequence loadLists(const Pass& pass, std::size_t count);
// A row goes to the history of its blocks [num_blocks, width] on a tile, or from there; `back` blocks before.
void addStoreBlock(const Pass& pass, ComputeSet set, unsigned tile, const Tensor& row, const Tensor& history);
void addLoadBlock(const Pass& pass, ComputeSet set, unsigned tile, const Tensor& history, const Tensor& row,
                  unsigned back = 0);

// Weights go to all tiles that read them in each block, or in each step.
Sequence copyWeights(const NetworkTensors& tensors);

}  // namespace snnjax::builders
