// Products of a layer's inputs on the matrix unit, by poplin: with dense rows, where adding up what lists name takes
// longer. All steps run at once then.
#include <algorithm>
#include <poplin/MatMul.hpp>

#include "builders/network/rows.hpp"
#include "planner/product_plan.hpp"

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
Tensor addDenseRows(Graph& graph, ComputeSet set, const NetworkPlan& plan, const NetworkTensors& tensors, std::size_t l,
                    const std::string& name) {
  const ListPlan& list = plan.lists[l];
  const ListTensors& own = tensors.lists[l];
  if (list.dense) return own.values_history.reshape({plan.blockRows(), list.num_neurons});
  const Tensor dense = addAtHomes(graph, FLOAT, list.homes, list.num_neurons, name);
  for (const Home& home : list.homes) {
    addVertex(
        graph, set, templateVertex("snnjax::RowsDense", UNSIGNED_SHORT, list.valued), home.tile,
        {{"lists", rowsOf(own.lists, home)}, {"values", rowsOf(own.values, home)}, {"dense", rowsOf(dense, home)}},
        {{"rows", home.rows}, {"stride", list.stride}, {"capacity", list.capacity}, {"num_inputs", list.num_neurons}});
  }
  return dense;
}

// [inputs, rows], in parts over all tiles: so many rows as the product takes in one step, of a few inputs each, which
// lie together where it is divided. So a part is one message, long enough that both tiles of a pair receive it at once.
Tensor addTransposedRows(Graph& graph, const NetworkPlan& plan, const LayerPlan& layer, const Tensor& rows,
                         ComputeSet set, const std::string& name) {
  const auto count = static_cast<unsigned>(rows.dim(0)), inputs = static_cast<unsigned>(rows.dim(1));
  const auto bytes = static_cast<std::size_t>(layer.unit_share * static_cast<double>(plan.bytes_per_tile));
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
Tensor addTransposedCurrents(Graph& graph, const NetworkPlan& plan, std::size_t l, const Tensor& g_current,
                             ComputeSet set, const std::string& name) {
  std::vector<Tensor> blocks(plan.layers[l].tiles.count);
  forEachTile(plan, l, [&](const LayerTile& at) {
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

Sequence addUnitCurrents(Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors, std::size_t l,
                         const Tensor& current) {
  const LayerPlan& layer = plan.layers[l];
  const std::string name = "forward/currents" + std::to_string(l);
  const ComputeSet dense = graph.addComputeSet("forward/dense_rows" + std::to_string(l));
  const Tensor rows = addDenseRows(graph, dense, plan, tensors, l, "forward/dense_rows" + std::to_string(l));
  Sequence program({Execute(dense)});
  const Tensor weights = ofNeurons(layer, tensors.layers[l].weights, layer.inputs);
  const Tensor all = asRows(current, layer.tiles, rows.dim(0), layer.paddedNeurons());
  if (layer.paddedNeurons() > layer.neurons) {
    program.add(zeros(graph, {all.slice(layer.neurons, layer.paddedNeurons(), 1)}, name + "/spare"));
  }
  program.add(Copy(multiply(graph, layer, rows, weights, program, name), ofNeurons(layer, current, rows.dim(0))));
  return program;
}

Sequence addUnitGradient(Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors, std::size_t l,
                         const Tensor& g_current, const Tensor& g_weights, const Pass& pass) {
  const LayerPlan& layer = plan.layers[l];
  const std::string name = "backward/weights" + std::to_string(l);
  Sequence program;
  const Tensor rows = addDenseRows(graph, pass.of_lists.front(), plan, tensors, l, name + "/dense_rows");
  const ComputeSet set = graph.addComputeSet("backward/transposed" + std::to_string(l));
  const Tensor by_input = addTransposedRows(graph, plan, layer, rows, set, name + "/rows");
  const Tensor by_neuron = addTransposedCurrents(graph, plan, l, g_current, set, name + "/g_current");
  program.add(Execute(set));
  const Tensor product = multiply(graph, layer, by_input, by_neuron.slice(0, layer.neurons).transpose(), program, name);
  // In parts on all tiles of a block first: one tile alone would receive its rows one by one.
  const Tensor parts = spreadOverGroups(graph, layer, g_weights, name + "/parts");
  program.add(Copy(product, ofNeurons(layer, parts, layer.inputs)));
  if (parts != g_weights) program.add(Copy(parts, g_weights));
  return program;
}

}  // namespace snnjax::builders
