// Products of a layer's inputs on the matrix unit, by poplin: with dense rows, where adding up what lists name takes
// longer. All steps run at once then.
#include <poplin/MatMul.hpp>

#include "builders/network/rows.hpp"
#include "planner/product_plan.hpp"

namespace snnjax::builders {
namespace {

Tensor multiply(Graph& graph, const Tensor& a, const Tensor& b, Sequence& program, const std::string& name) {
  const poplar::OptionFlags options = {{"availableMemoryProportion", std::to_string(kUnitShare)}};
  return poplin::matMul(graph, a, b, program, FLOAT, name, options);
}

void addTransposed(Graph& graph, ComputeSet set, unsigned tile, const Tensor& in, const Tensor& out) {
  graph.setTileMapping(out, tile);
  const auto bits = [](const Tensor& floats) { return floats.reinterpret(UNSIGNED_INT); };
  addVertex(graph, set, "snnjax::Transpose<unsigned int>", tile, {{"in", bits(in)}, {"out", bits(out)}},
            {{"rows", static_cast<unsigned>(in.dim(0))}, {"columns", static_cast<unsigned>(in.dim(1))}});
}

// [rows, inputs], at the homes of the lists.
Tensor addDenseRows(const LayerPass& of, ComputeSet set) {
  Graph& graph = of.graph;
  const ListPlan& list = of.plan.lists[of.l];
  const ListTensors& own = of.pass.tensors.lists[of.l];
  if (list.dense) return own.values_history.reshape({of.plan.blockRows(), list.num_neurons});
  const std::string name = of.name("dense_rows");
  const Tensor dense = addAtHomes(graph, FLOAT, list.homes, list.num_neurons, name);
  for (const Home& home : list.homes) {
    addVertex(
        graph, set, templateVertex("snnjax::RowsDense", list.valued), home.tile,
        {{"lists", rowsOf(own.lists, home)}, {"values", rowsOf(own.values, home)}, {"dense", rowsOf(dense, home)}},
        with(recordStates(home.rows, list), {{"num_inputs", list.num_neurons}}));
  }
  return dense;
}

// [inputs, rows], in parts over all tiles: so many rows as the product takes in one step, of a few inputs each, which
// lie together where it is divided. So a part is one message, long enough that both tiles of a pair receive it at once.
Tensor addTransposedRows(Graph& graph, const NetworkPlan& plan, const LayerPlan& layer, const Tensor& rows,
                         ComputeSet set, const std::string& name) {
  const auto count = static_cast<unsigned>(rows.dim(0)), inputs = static_cast<unsigned>(rows.dim(1));
  const auto bytes = static_cast<std::size_t>(kUnitShare * static_cast<double>(plan.bytes_per_tile));
  const auto division = planner::planProduct({inputs, count, layer.neurons}, {plan.num_tiles, bytes});
  const auto height = static_cast<unsigned>(division.k_step), down = ceilDivide(count, height);
  const unsigned most = static_cast<unsigned>(division.m_block),
                 least = ceilDivide(inputs, std::max(1U, plan.num_tiles / down));
  const unsigned width = ceilDivide(most, std::max(1U, most / least));
  std::vector<Tensor> parts;
  unsigned tile = 0;
  for (unsigned i = 0; i < inputs; i += width) {
    std::vector<Tensor> of_rows;
    for (unsigned r = 0; r < count; r += height) {
      const Tensor in = rows.slice(r, std::min(count, r + height)).slice(i, std::min(inputs, i + width), 1);
      of_rows.push_back(graph.addVariable(FLOAT, {in.dim(1), in.dim(0)}, name));
      addTransposed(graph, set, tile++ % plan.num_tiles, in, of_rows.back());
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

// Without columns to spare: the product is divided as if there were none.
Tensor ofNeurons(const LayerPlan& layer, const Tensor& blocks, std::size_t rows) {
  return asRows(blocks, layer.tiles, rows, layer.neurons);
}

}  // namespace

Sequence addUnitCurrents(const LayerPass& of, const Tensor& current) {
  Sequence program;
  const ComputeSet dense = of.graph.addComputeSet(of.name("dense_rows"));
  const Tensor rows = addDenseRows(of, dense), weights = ofNeurons(of.layer, of.tensors.weights, of.layer.inputs);
  program.add(Execute(dense));
  const Tensor all = asRows(current, of.layer.tiles, rows.dim(0), of.layer.paddedNeurons());
  if (of.layer.paddedNeurons() > of.layer.neurons) {
    const Tensor spare = all.slice(of.layer.neurons, of.layer.paddedNeurons(), 1);
    program.add(zeros(of.graph, {spare}, of.name("spare_currents")));
  }
  const Tensor product = multiply(of.graph, rows, weights, program, of.name("currents"));
  program.add(Copy(product, ofNeurons(of.layer, current, rows.dim(0))));
  return program;
}

Sequence addUnitGradient(const LayerPass& of, const Tensor& g_current) {
  const Tensor& g_weights = of.cotangents().g_weights;
  const std::string name = of.name("weights");
  Sequence program;
  const Tensor rows = addDenseRows(of, of.pass.of_lists.front());
  const ComputeSet set = of.graph.addComputeSet(of.name("transposed"));
  const Tensor by_input = addTransposedRows(of.graph, of.plan, of.layer, rows, set, name + "/rows");
  const Tensor by_neuron = addTransposedCurrents(of, g_current, set, name + "/g_current");
  program.add(Execute(set));
  const Tensor product = multiply(of.graph, by_input, by_neuron.slice(0, of.layer.neurons).transpose(), program, name);
  // In parts on all tiles of a block first: one tile alone would receive its rows one by one.
  const Tensor parts = spreadOverGroups(of.graph, of.layer, g_weights, name + "/parts");
  program.add(Copy(product, ofNeurons(of.layer, parts, of.layer.inputs)));
  if (parts != g_weights) program.add(Copy(parts, g_weights));
  return program;
}

}  // namespace snnjax::builders
