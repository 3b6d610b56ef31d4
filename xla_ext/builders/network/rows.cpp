#include "builders/network/rows.hpp"

namespace snnjax::builders {

Tensor LayerPass::addRows(std::size_t width, const std::string& name_of_rows) const {
  const Tensor rows = addOfSamples(graph, plan, l, 1, plan.block_steps * width, name_of_rows);
  return rows.reshape({rows.dim(0), rows.dim(2)});
}

Part partOf(const LayerPlan& layer, std::size_t elements, std::size_t group) {
  const std::size_t columns = layer.tiles.columns, groups = layer.sample_groups.size(), rows = elements / columns - 1;
  const auto first = [&](std::size_t g) { return g == groups ? elements : g * rows / groups * columns; };
  return {first(group), first(group + 1)};
}

Tensor addSpread(Graph& graph, const Type& type, const LayerPlan& layer, std::size_t elements, const std::string& name,
                 unsigned first) {
  const Tensor blocks = graph.addVariable(type, {layer.tiles.count - first, elements}, name);
  for (unsigned p = first; p < layer.tiles.count; ++p) {
    for (std::size_t g = 0; g < layer.sample_groups.size(); ++g) {
      const Part part = partOf(layer, elements, g);
      if (part.first == part.last) continue;
      graph.setTileMapping(blocks[p - first].slice(part.first, part.last), layer.tileOf(p, g));
    }
  }
  return blocks;
}

Tensor addMatrix(Graph& graph, const Type& type, const LayerPlan& layer, std::size_t rows, const Tensor& given,
                 const std::string& name) {
  const std::size_t columns = layer.tiles.columns, elements = rows * columns;
  const unsigned whole = given.valid() ? layer.neurons / layer.tiles.columns : 0;
  std::vector<Tensor> parts;
  if (whole > 0) {
    const Tensor behind = graph.addVariable(type, {whole, columns}, name + "/behind");
    for (unsigned p = 0; p < whole; ++p) {
      graph.setTileMapping(behind[p], layer.tileOf(p, layer.sample_groups.size() - 1));
    }
    graph.setInitialValue(behind, 0.0F);
    parts = {poplar::concat(given.slice(0, whole * elements).reshape({whole, elements}), behind, 1)};
  }
  if (whole < layer.tiles.count) parts.push_back(addSpread(graph, type, layer, elements + columns, name, whole));
  return poplar::concat(parts);
}

Tensor LayerTile::ofSamples(const Tensor& all) const {
  const SampleGroup& own = layer().sample_groups[group];
  const std::size_t each = all.numElements() / of.plan.options.batch;
  return all.flatten().slice(own.first * each, (own.first + own.count) * each);
}

Tensor LayerTile::ownRows(const Tensor& rows) const { return rows.valid() ? ofSamples(rows[block]) : rows; }
Tensor LayerTile::fromHomes(const Tensor& rows) const { return rows.valid() ? ofSamples(rows) : rows; }

Tensor LayerTile::ownStates(const Tensor& states) const {
  if (!states.valid()) return {};
  const SampleGroup& own = layer().sample_groups[group];
  const std::size_t columns = layer().tiles.columns, rows = states.dim(1) / (of.plan.options.batch * columns);
  const Tensor all = states[block].reshape({rows, of.plan.options.batch, columns});
  return all.slice(own.first, own.first + own.count, 1).flatten();
}

Tensor LayerTile::ofGroup(const Tensor& constants) const {
  if (!constants.valid()) return {};
  const std::size_t each = constants.dim(1) / layer().sample_groups.size();
  return constants[block].slice(group * each, (group + 1) * each);
}

Tensor LayerTile::weights() const {
  return of.tensors.weight_copies.empty() ? of.tensors.weights[block] : of.tensors.weight_copies[group][block];
}

Tensor RowPart::of(const Tensor& all, unsigned rows) const {
  if (!all.valid()) return {};
  const std::size_t each = all.numElements() / rows;
  return all.flatten().slice(first * each, (first + count) * each);
}

std::vector<RowPart> rowPartsOf(const LayerTile& at) {
  const LayerPlan& layer = at.layer();
  const auto groups = static_cast<unsigned>(layer.sample_groups.size()), parts = layer.row_parts, rows = at.rows();
  if (parts == 1) return {{at.tile(), 0, rows}};
  const unsigned others = othersOf(layer.neurons, layer.tiles.columns, groups, at.of.plan.num_tiles),
                 behind = layer.tiles.first + (layer.tiles.count * groups + 1) / 2 * 2,
                 first = behind + at.block * others + static_cast<unsigned>(at.group) * parts;
  std::vector<RowPart> all;
  for (unsigned part = 0, each = ceilDivide(rows, parts); part * each < rows; ++part) {
    all.push_back({(first + part) % at.of.plan.num_tiles, part * each, std::min(each, rows - part * each)});
  }
  return all;
}

std::vector<State> rowStates(const LayerTile& at, const ListPlan& list) {
  return with(currentStates(at, list, at.rows()), {{"num_inputs", list.num_neurons}});
}

std::vector<State> currentStates(const LayerTile& at, const ListPlan& list, unsigned rows) {
  return with(recordStates(rows, list), {{"neurons", at.layer().tiles.columns}});
}

Sequence copyWeights(const NetworkTensors& tensors) {
  Sequence program;
  for (const LayerTensors& layer : tensors.layers) {
    for (const Tensor& copy : layer.weight_copies) program.add(Copy(layer.weights, copy));
    if (layer.recurrent_copies.size() < 2) continue;
    for (const Tensor& copy : layer.recurrent_copies) program.add(Copy(layer.recurrent, copy));
  }
  return program;
}

}  // namespace snnjax::builders
