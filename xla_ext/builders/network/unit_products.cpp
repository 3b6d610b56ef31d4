// Products of a layer's inputs on the matrix unit, by poplin: with dense rows, where adding up what lists name takes
// longer. All steps run at once then.
#include <algorithm>
#include <poplin/MatMul.hpp>

#include "builders/network/rows.hpp"

namespace snnjax::builders {
namespace {

Tensor multiply(Graph& graph, const LayerPlan& layer, const Tensor& a, const Tensor& b, Sequence& program,
                const std::string& name) {
  const poplar::OptionFlags options = {{"availableMemoryProportion", std::to_string(layer.unit_share)}};
  return poplin::matMul(graph, a, b, program, FLOAT, name, options);
}

void addTransposed(Graph& graph, ComputeSet set, unsigned tile, const Tensor& in, const Tensor& out) {
  graph.setTileMapping(out, tile);
  const auto bits = [](const Tensor& floats) { return floats.reinterpret(UNSIGNED_INT); };
  addVertex(graph, set, "snnjax::Transpose<unsigned int>", tile, {{"in", bits(in)}, {"out", bits(out)}},
            {{"rows", static_cast<unsigned>(in.dim(0))}, {"columns", static_cast<unsigned>(in.dim(1))}});
}

// [rows, inputs], at the homes of the lists.
Tensor addDenseRows(const LayerPass& of, Sequence& program) {
  Graph& graph = of.graph;
  const ListPlan& list = of.plan.lists[of.l];
  const ListTensors& own = of.pass.tensors.lists[of.l];
  if (list.dense) return own.values_history.reshape({of.plan.blockRows(), list.num_neurons});
  const std::string name = of.name("dense_rows");
  const Tensor dense = addAtHomes(graph, FLOAT, list.homes, list.num_neurons, name);
  const ComputeSet set = graph.addComputeSet(name);
  for (const Home& home : list.homes) {
    addVertex(
        graph, set, templateVertex("snnjax::RowsDense", UNSIGNED_SHORT, list.valued), home.tile,
        {{"lists", rowsOf(own.lists, home)}, {"values", rowsOf(own.values, home)}, {"dense", rowsOf(dense, home)}},
        with(recordStates(home.rows, list), {{"num_inputs", list.num_neurons}}));
  }
  program.add(Execute(set));
  return dense;
}

// [inputs, rows], in parts of a few inputs and rows each over all tiles.
Tensor addTransposedRows(Graph& graph, const NetworkPlan& plan, const Tensor& rows, ComputeSet set,
                         const std::string& name) {
  constexpr unsigned kMessage = 8;  // elements at least: for fewer a message costs more than they do
  const auto count = static_cast<unsigned>(rows.dim(0)), inputs = static_cast<unsigned>(rows.dim(1));
  const unsigned width = std::max(kMessage, ceilDivide(inputs, plan.num_tiles)), across = ceilDivide(inputs, width);
  const unsigned height = ceilDivide(count, std::max(1U, plan.num_tiles / across));
  std::vector<Tensor> parts;
  unsigned tile = 0;
  for (unsigned i = 0; i < inputs; i += width) {
    std::vector<Tensor> of_rows;
    for (unsigned r = 0; r < count; r += height) {
      const Tensor in = rows.slice(r, std::min(count, r + height)).slice(i, std::min(inputs, i + width), 1);
      of_rows.push_back(graph.addVariable(FLOAT, {in.dim(1), in.dim(0)}, name));
      addTransposed(graph, set, tile++, in, of_rows.back());
    }
    parts.push_back(poplar::concat(of_rows, 1));
  }
  return poplar::concat(parts);
}

// [neurons of all blocks, rows], where the neurons are.
Tensor addTransposedCurrents(const LayerPass& of, const Tensor& g_current, ComputeSet set, const std::string& name) {
  Graph& graph = of.graph;
  std::vector<Tensor> blocks(of.layer.tiles.count);
  forEachTile(of, [&](const LayerTile& at) {
    const unsigned columns = at.layer().tiles.columns;
    const Tensor out = graph.addVariable(FLOAT, {columns, at.rows()}, name);
    addTransposed(graph, set, at.tile(), at.ownRows(g_current).reshape({at.rows(), columns}), out);
    blocks[at.block] = at.group == 0 ? out : poplar::concat(blocks[at.block], out, 1);
  });
  return poplar::concat(blocks);
}

// The columns to spare too.
Tensor asMatrix(const LayerPlan& layer, const Tensor& blocks, std::size_t rows) {
  return asRows(blocks, layer.tiles, rows, layer.paddedNeurons());
}

}  // namespace

Sequence addUnitCurrents(const LayerPass& of, const Tensor& current) {
  Sequence program;
  const Tensor rows = addDenseRows(of, program), weights = asMatrix(of.layer, of.tensors.weights, of.layer.inputs);
  const Tensor product = multiply(of.graph, of.layer, rows, weights, program, of.name("currents"));
  program.add(Copy(product, asMatrix(of.layer, current, rows.dim(0))));
  return program;
}

Sequence addUnitGradient(const LayerPass& of, const Tensor& g_current) {
  const Tensor& g_weights = of.cotangents().g_weights;
  const std::string name = of.name("weights");
  Sequence program;
  const Tensor rows = addDenseRows(of, program);
  const ComputeSet set = of.graph.addComputeSet(of.name("transposed"));
  const Tensor by_input = addTransposedRows(of.graph, of.plan, rows, set, name + "/rows");
  const Tensor by_neuron = addTransposedCurrents(of, g_current, set, name + "/g_current");
  program.add(Execute(set));
  const Tensor product = multiply(of.graph, of.layer, by_input, by_neuron.transpose(), program, name);
  // In parts on all tiles of a block first: one tile alone would receive its rows one by one.
  const Tensor parts = spreadOverGroups(of.graph, of.layer, g_weights, name + "/parts");
  program.add(Copy(product, asMatrix(of.layer, parts, of.layer.inputs)));
  if (parts != g_weights) program.add(Copy(parts, g_weights));
  return program;
}

}  // namespace snnjax::builders
