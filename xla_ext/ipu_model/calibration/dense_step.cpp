// The dense twin keeps neurons, weights and the exchange of all layers at once where our sparse program has them, and
// replaces lists by rows of floats for all neurons:
//   1. the spikes of the layer below go to every tile of a layer, which multiplies them by its weights (Dot);
//   2. membranes and spikes of the tile's neurons (LifStep);
//   3. their gradients (LifStepBackward);
//   4. the spikes once more, to be multiplied by these gradients (DotTransposed), which yields those of the weights;
//      and the tile's share of the gradients of all spikes of the layer below (TransposedDot);
//   5. each tile below gets that share of its own neurons from all tiles above, and adds them up (SumRows).
// Rows are neurons and columns are samples, so that a tile's spikes are one run and the products have 8 columns at a
// time, the fastest the codelets have. One time step is run, without histories and optimiser, which do not differ.
#include "calibration/dense_step.hpp"

#include <ostream>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>

#include "builders/tiles_of_layers.hpp"
#include "builders/vertices.hpp"

namespace ipu_model::calibration {
namespace {

using poplar::FLOAT;
using poplar::Tensor;
using poplar::program::Execute;
using snnjax::builders::State;
using snnjax::builders::TileRange;

// [tiles, elements], one block a tile.
struct DenseLayer {
  TileRange tiles;
  unsigned inputs = 0;
  Tensor in;                                       // the spikes of all tiles below, [inputs, batch]
  Tensor weights;                                  // [columns, inputs]
  Tensor g_weights;                                // likewise
  Tensor current, spikes, v, g_spikes, g_current;  // [columns, batch]
  Tensor constants;  // [batch]: decay, threshold and gain of a row's neuron for each sample
  Tensor partial;    // [inputs, batch], gradients of the spikes below; not of the network's inputs
};

class DenseStep {
 public:
  DenseStep(poplar::Graph& graph, const Cell& cell, const std::vector<TileRange>& tiles) : graph_(graph) {
    const unsigned all = graph.getTarget().getNumTiles();
    const TileRange everywhere{0, all, 1};
    Tensor in = snnjax::builders::addBlocks(graph, FLOAT, everywhere, (cell.neurons.front() * kBatch + all - 1) / all,
                                            "inputs");
    for (std::size_t l = 0; l < tiles.size(); ++l) {
      const unsigned inputs = l == 0 ? cell.neurons[0] : tiles[l - 1].count * tiles[l - 1].columns;
      layers_.push_back(layer(tiles[l], inputs, in.flatten().slice(0, std::size_t{inputs} * kBatch), l > 0));
      in = layers_.back().spikes;
    }
  }

  poplar::program::Sequence program() {
    return {Execute(set("products", &DenseStep::products)), Execute(set("neurons", &DenseStep::neurons)),
            Execute(set("neuron_gradients", &DenseStep::neuronGradients)),
            Execute(set("gradients", &DenseStep::gradients)), Execute(sums())};
  }

 private:
  DenseLayer layer(const TileRange& tiles, unsigned inputs, Tensor in, bool propagates) {
    const auto blocks = [&](std::size_t elements) {
      return snnjax::builders::addBlocks(graph_, FLOAT, tiles, elements, "dense");
    };
    const std::size_t own = std::size_t{tiles.columns} * kBatch, weights = std::size_t{tiles.columns} * inputs;
    return {tiles,           inputs,          in,
            blocks(weights), blocks(weights), blocks(own),
            blocks(own),     blocks(own),     blocks(own),
            blocks(own),     blocks(kBatch),  propagates ? blocks(std::size_t{inputs} * kBatch) : Tensor{}};
  }

  using AddVertices = void (DenseStep::*)(poplar::ComputeSet, const DenseLayer&, unsigned);
  poplar::ComputeSet set(const char* name, AddVertices add_vertices) {
    const poplar::ComputeSet made = graph_.addComputeSet(name);
    for (const DenseLayer& layer : layers_) {
      for (unsigned i = 0; i < layer.tiles.count; ++i) (this->*add_vertices)(made, layer, i);
    }
    return made;
  }

  void add(poplar::ComputeSet set, const DenseLayer& layer, unsigned i, const std::string& type,
           const std::vector<snnjax::builders::Field>& fields, const std::vector<State>& states) {
    snnjax::builders::addVertex(graph_, set, type, layer.tiles.first + i, fields, states);
  }
  static std::vector<State> sizes(unsigned rows, unsigned depth, unsigned columns, bool accumulate) {
    return {{"rows", rows}, {"depth", depth}, {"columns", columns}, {"accumulate", accumulate}};
  }

  void products(poplar::ComputeSet set, const DenseLayer& layer, unsigned i) {
    add(set, layer, i, "snnjax::Dot<float,float>",
        {{"a", layer.weights[i]}, {"b", layer.in}, {"out", layer.current[i]}},
        sizes(layer.tiles.columns, layer.inputs, kBatch, false));
  }

  void neurons(poplar::ComputeSet set, const DenseLayer& layer, unsigned i) {
    const Tensor v_new = placed(layer, i, layer.current[i].numElements());
    add(set, layer, i, "snnjax::LifStep<float>",
        {{"v", layer.v[i]},
         {"current", layer.current[i]},
         {"decay", layer.constants[i]},
         {"threshold", layer.constants[i]},
         {"gain", layer.constants[i]},
         {"v_new", v_new},
         {"spikes", layer.spikes[i]}},
        conventions(layer));
  }

  void neuronGradients(poplar::ComputeSet set, const DenseLayer& layer, unsigned i) {
    constexpr unsigned kWorkers = 6;
    std::vector<State> states = conventions(layer);
    states.insert(states.end(),
                  {{"surrogate", static_cast<unsigned char>(0)}, {"detach_reset", true}, {"slope", 10.0F}});
    const auto sums = [&] { return placed(layer, i, std::size_t{kWorkers} * kBatch); };
    add(set, layer, i, "snnjax::LifStepBackward<float>",
        {{"v", layer.v[i]},
         {"current", layer.current[i]},
         {"decay", layer.constants[i]},
         {"threshold", layer.constants[i]},
         {"gain", layer.constants[i]},
         {"g_v_new", placed(layer, i, layer.v[i].numElements())},
         {"g_spikes", layer.g_spikes[i]},
         {"g_v", placed(layer, i, layer.v[i].numElements())},
         {"g_current", layer.g_current[i]},
         {"g_decay", sums()},
         {"g_threshold", sums()},
         {"g_gain", sums()}},
        states);
  }

  void gradients(poplar::ComputeSet set, const DenseLayer& layer, unsigned i) {
    add(set, layer, i, "snnjax::DotTransposed<float,float>",
        {{"a", layer.g_current[i]}, {"b", layer.in}, {"out", layer.g_weights[i]}},
        sizes(layer.tiles.columns, kBatch, layer.inputs, true));
    if (!layer.partial.valid()) return;
    add(set, layer, i, "snnjax::TransposedDot<float,float>",
        {{"a", layer.weights[i]}, {"b", layer.g_current[i]}, {"out", layer.partial[i]}},
        sizes(layer.inputs, layer.tiles.columns, kBatch, false));
  }

  poplar::ComputeSet sums() {
    const poplar::ComputeSet set = graph_.addComputeSet("sums");
    for (std::size_t l = 0; l + 1 < layers_.size(); ++l) {
      const DenseLayer &below = layers_[l], &above = layers_[l + 1];
      const unsigned own = below.tiles.columns * kBatch;
      for (unsigned i = 0; i < below.tiles.count; ++i) {
        const Tensor shares = above.partial.slice(std::size_t{i} * own, std::size_t{i + 1} * own, 1);
        add(set, below, i, "snnjax::SumRows", {{"in", shares}, {"out", below.g_spikes[i]}},
            {{"rows", above.tiles.count}, {"columns", own}});
      }
    }
    return set;
  }

  static std::vector<State> conventions(const DenseLayer& layer) {
    constexpr unsigned char kZero = 1, kBeforeDecay = 0;
    return {{"rows", layer.tiles.columns}, {"neurons", kBatch},       {"reset", kZero},
            {"reset_time", kBeforeDecay},  {"spike_from_old", false}, {"inclusive", false}};
  }

  Tensor placed(const DenseLayer& layer, unsigned i, std::size_t elements) {
    const Tensor made = graph_.addVariable(FLOAT, {elements}, "dense");
    graph_.setTileMapping(made, layer.tiles.first + i);
    return made;
  }

  poplar::Graph& graph_;
  std::vector<DenseLayer> layers_;
};

PhaseCycles difference(const PhaseCycles& more, const PhaseCycles& fewer, std::uint64_t steps) {
  return {(more.compute - fewer.compute) / steps, (more.exchange - fewer.exchange) / steps,
          (more.sync - fewer.sync) / steps, 0};
}

}  // namespace

SparseAndDense compareWithDense(const Cell& cell, const std::string& codelets) {
  const poplar::Device device = poplar::IPUModel("mk2").createDevice();
  poplar::Graph graph(device);
  graph.addCodelets(codelets);
  poplar::Engine engine(graph, DenseStep(graph, cell, tilesOf(cell)).program());
  engine.load(device);
  engine.run();
  constexpr unsigned kFew = 10, kMore = 20;
  const PhaseCycles more = runTrainingStep(cell, kMore, codelets).profile.cycles;
  const PhaseCycles fewer = runTrainingStep(cell, kFew, codelets).profile.cycles;
  return {difference(more, fewer, kMore - kFew), profileOf(engine).cycles};
}

std::ostream& operator<<(std::ostream& out, const SparseAndDense& step) {
  out << "| cycles of a time step | sparse | dense |\n| --- | --- | --- |\n";
  const auto row = [&out](const char* name, std::uint64_t sparse, std::uint64_t dense) {
    out << "| " << name << " | " << sparse << " | " << dense << " |\n";
  };
  row("compute", step.sparse.compute, step.dense.compute);
  row("exchange", step.sparse.exchange, step.dense.exchange);
  row("sync", step.sparse.sync, step.dense.sync);
  row("all", step.sparse.total(), step.dense.total());
  return out << "\nSparse is " << step.speedUp() << " times as fast.\n\n";
}

}  // namespace ipu_model::calibration
