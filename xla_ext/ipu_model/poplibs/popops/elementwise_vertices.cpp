#include "poplibs/popops/elementwise_vertices.hpp"

#include "poplibs/popops/per_tile.hpp"

namespace poplibs {
namespace {

// What an operand gives to each of the parts of the output.
std::vector<poplar::Tensor> shares(poplar::Graph& graph, const Operand& operand, const std::vector<TilePart>& parts,
                                   const poplar::Type& number_type) {
  if (!operand.isSingle()) return rowsOf(operand.tensor, parts);
  if (!operand.isNumber()) return std::vector<poplar::Tensor>(parts.size(), operand.tensor.flatten());
  const poplar::Tensor numbers = constants(graph, number_type, parts.size(), operand.number, "number");
  std::vector<poplar::Tensor> each;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    each.push_back(numbers.slice(i, i + 1));
    graph.setTileMapping(each.back(), parts[i].tile);
  }
  return each;
}

}  // namespace

void addElementwise(poplar::Graph& graph, poplar::ComputeSet cs, const std::string& codelet,
                    const std::vector<Operand>& operands, const poplar::Type& number_type, const poplar::Tensor& out) {
  const std::vector<TilePart> parts = partsByTile(graph.getTileMapping(out));
  const std::vector<poplar::Tensor> results = rowsOf(out, parts);
  std::vector<std::vector<poplar::Tensor>> inputs;
  for (const Operand& operand : operands) inputs.push_back(shares(graph, operand, parts, number_type));
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const poplar::VertexRef vertex = graph.addVertex(cs, codelet);
    graph.setTileMapping(vertex, parts[p].tile);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const std::string number = operands.size() > 1 ? std::to_string(i + 1) : "";
      graph.connect(vertex["in" + number], inputs[i][p]);
      if (operands.size() > 1) graph.setInitialValue(vertex["single" + number], operands[i].isSingle());
    }
    graph.connect(vertex["out"], results[p]);
    graph.setInitialValue(vertex["count"], static_cast<unsigned>(results[p].numElements()));
  }
}

}  // namespace poplibs
