#include "vertices.hpp"

#include <popops/Zero.hpp>

namespace snnjax::builders {

void addVertex(Graph& graph, ComputeSet set, const std::string& type, unsigned tile, const std::vector<Field>& fields,
               const std::vector<State>& states) {
  const poplar::VertexRef vertex = graph.addVertex(set, type);
  for (const Field& field : fields) {
    if (!field.tensor.valid()) continue;
    const bool is_scalar = field.tensor.rank() == 0;
    graph.connect(vertex[field.name], is_scalar ? field.tensor : field.tensor.flatten());
  }
  for (const State& state : states) {
    std::visit([&](auto value) { graph.setInitialValue(vertex[state.name], value); }, state.value);
  }
  graph.setTileMapping(vertex, tile);
}

std::vector<State> recordStates(unsigned rows, const ListPlan& list) {
  return {{"rows", rows}, {"stride", list.stride}, {"capacity", list.capacity}};
}

Tensor addBlocks(Graph& graph, const Type& type, const TileRange& range, std::size_t elements,
                 const std::string& name) {
  const Tensor blocks = graph.addVariable(type, {range.count, elements}, name);
  for (unsigned i = 0; i < range.count; ++i) graph.setTileMapping(blocks[i], range.first + i);
  return blocks;
}

Tensor asRows(const Tensor& blocks, const TileRange& range, std::size_t rows, std::size_t width) {
  const std::size_t count = range.count, columns = range.columns;
  const Tensor used = blocks.slice(0, rows * columns, 1).reshape({count, rows, columns});
  return used.dimShuffle({1, 0, 2}).reshape({rows, count * columns}).slice(0, width, 1);
}

Tensor addAtHomes(Graph& graph, const Type& type, const std::vector<Home>& homes, std::size_t elements,
                  const std::string& name) {
  const std::size_t count = homes.back().first + homes.back().rows;
  const Tensor rows = graph.addVariable(type, {count, elements}, name);
  for (const Home& home : homes) graph.setTileMapping(rowsOf(rows, home), home.tile);
  return rows;
}

Tensor rowsOf(const Tensor& tensor, const Home& home, unsigned dimension) {
  return !tensor.valid() ? tensor : tensor.slice(home.first, home.first + home.rows, dimension);
}

Program zeros(Graph& graph, const std::vector<Tensor>& tensors, const std::string& name) {
  if (tensors.empty()) return Sequence();
  const ComputeSet set = graph.addComputeSet(name);
  for (const Tensor& each : tensors) popops::zero(graph, each, graph.getTileMapping(each), set);
  return Execute(set);
}

}  // namespace snnjax::builders
