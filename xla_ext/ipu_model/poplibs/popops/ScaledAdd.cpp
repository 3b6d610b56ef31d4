#include <popops/Cast.hpp>
#include <popops/ScaledAdd.hpp>
#include <poputil/Broadcast.hpp>
#include <poputil/VertexTemplates.hpp>
#include <poputil/exceptions.hpp>

#include "poplibs/popops/per_tile.hpp"

namespace popops {
namespace {

// A factor as each tile reads it: a constant, or one FLOAT element.
struct Scale {
  float number = 1;
  poplar::Tensor tensor;
};

Scale fromTensor(poplar::Graph& graph, const poplar::Tensor& scale, poplar::program::Sequence& prog) {
  const poplar::Tensor scalar = scale.reshape({});
  return {1, scalar.elementType() == poplar::FLOAT ? scalar : cast(graph, scalar, poplar::FLOAT, prog)};
}

std::vector<poplar::Tensor> perTile(poplar::Graph& graph, const Scale& scale,
                                    const std::vector<poplibs::TilePart>& parts) {
  if (scale.tensor.valid()) return std::vector<poplar::Tensor>(parts.size(), scale.tensor);
  const poplar::Tensor numbers =
      poplibs::constants(graph, poplar::FLOAT, parts.size(), static_cast<double>(scale.number), "scale");
  std::vector<poplar::Tensor> each;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    graph.setTileMapping(numbers[i], parts[i].tile);
    each.push_back(numbers[i]);
  }
  return each;
}

void scaledAdd(poplar::Graph& graph, const poplar::Tensor& a, const Scale& scale_a, const poplar::Tensor& b,
               const Scale& scale_b, poplar::program::Sequence& prog, const poplar::DebugContext& debug) {
  const poplar::Type type = a.elementType();
  if (!(type == poplar::FLOAT || type == poplar::HALF || type == poplar::INT)) {
    throw poputil::poplibs_error("popops::scaledAddTo: `a` must be of type float, half or int, got " + type.toString() +
                                 ". Cast it.");
  }
  poplar::Tensor other = b.elementType() == type ? b : cast(graph, b, type, prog, debug);
  poputil::broadcastToMatch(other, a.shape());
  const auto parts = poplibs::partsByTile(graph.getTileMapping(a));
  const auto data = poplibs::rowsOf(a, parts), others = poplibs::rowsOf(other, parts);
  const auto scales_a = perTile(graph, scale_a, parts), scales_b = perTile(graph, scale_b, parts);
  const poplar::ComputeSet cs = graph.addComputeSet({debug, "scaledAdd"});
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const poplar::VertexRef vertex = graph.addVertex(cs, poputil::templateVertex("snnjax::ScaledAdd", type));
    graph.connect(vertex["data"], data[p]);
    graph.connect(vertex["other"], others[p]);
    graph.connect(vertex["scale_data"], scales_a[p]);
    graph.connect(vertex["scale_other"], scales_b[p]);
    graph.setInitialValue(vertex["count"], static_cast<unsigned>(data[p].numElements()));
    graph.setTileMapping(vertex, parts[p].tile);
  }
  prog.add(poplar::program::Execute(cs, debug));
}

}  // namespace

void scaledAddTo(poplar::Graph& graph, poplar::Tensor a, poplar::Tensor b, float scale_b,
                 poplar::program::Sequence& prog, const poplar::DebugContext& debug, const poplar::OptionFlags&) {
  scaledAdd(graph, a, {}, b, {scale_b, {}}, prog, debug);
}

void scaledAddTo(poplar::Graph& graph, poplar::Tensor a, poplar::Tensor b, poplar::Tensor scale_b,
                 poplar::program::Sequence& prog, const poplar::DebugContext& debug, const poplar::OptionFlags&) {
  scaledAdd(graph, a, {}, b, fromTensor(graph, scale_b, prog), prog, debug);
}

}  // namespace popops
