#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Encoding.hpp>
#include <poputil/VertexTemplates.hpp>
#include <poputil/exceptions.hpp>

#include "poplibs/popops/per_tile.hpp"

namespace popops {
namespace {

void addIota(poplar::Graph& graph, const poplar::Tensor& t, double start, poplar::program::Sequence& prog,
             const poplar::DebugContext& debug) {
  const poplar::Type type = t.elementType();
  const bool real = type == poplar::FLOAT || type == poplar::HALF;
  const poplar::ComputeSet cs = graph.addComputeSet({debug, "iota"});
  for (const poplibs::TilePart& part : poplibs::partsByTile(graph.getTileMapping(t))) {
    for (const poplar::Interval& region : part.regions) {
      const poplar::VertexRef vertex = graph.addVertex(cs, poputil::templateVertex("snnjax::Iota", type));
      const double first = start + static_cast<double>(region.begin());
      graph.connect(vertex["out"], t.flatten().slice(region));
      graph.setInitialValue(vertex["count"], static_cast<unsigned>(region.size()));
      if (real) {
        graph.setInitialValue(vertex["first"], first);
      } else {
        graph.setInitialValue(vertex["first"], static_cast<long long>(first));
      }
      graph.setInitialValue(vertex["step"], 1);
      graph.setTileMapping(vertex, part.tile);
    }
  }
  prog.add(poplar::program::Execute(cs, debug));
}

// Where the class of a column is that of its row; BOOL.
poplar::Tensor matches(poplar::Graph& graph, const poplar::Tensor& indices, const poplar::Tensor& encoded,
                       poplar::program::Sequence& prog, const poplar::DebugContext& debug) {
  const std::size_t rows = indices.numElements();
  if (encoded.rank() != 2 || encoded.dim(0) != rows) {
    throw poputil::poplibs_error("popops::encodeOneHot: `encoded` must be {" + std::to_string(rows) +
                                 ", classes}, got " + poplibs::toString(encoded.shape()) + ". One row for each index.");
  }
  std::vector<unsigned> numbers;
  for (unsigned i = 0; i < encoded.dim(1); ++i) numbers.push_back(i);
  const poplar::Tensor classes = graph.addConstant(poplar::UNSIGNED_INT, {1, encoded.dim(1)},
                                                   poplar::ArrayRef<unsigned>(numbers), {debug, "classes"});
  graph.setTileMapping(classes, 0);
  const poplar::Tensor found = poplibs::cloneOnTiles(graph, poplar::BOOL, encoded, {debug, "found"});
  const poplar::Tensor column = indices.reshape({rows, 1}).reinterpret(poplar::UNSIGNED_INT);
  mapWithOutput(graph, expr::BinaryOpType::EQUAL, column, classes, found, prog, debug);
  return found;
}

}  // namespace

void encodeOneHot(poplar::Graph& graph, const poplar::Tensor& indices, const poplar::Tensor& encoded,
                  poplar::program::Sequence& prog, const poplar::DebugContext& debug) {
  const poplar::Tensor found = matches(graph, indices, encoded, prog, debug);
  prog.add(cast(graph, found, encoded, debug));
}

void encodeOneHot(poplar::Graph& graph, const poplar::Tensor& indices, const poplar::Tensor& encoded,
                  poplar::program::Sequence& prog, const poplar::Tensor& on, const poplar::Tensor& off,
                  const poplar::DebugContext& debug) {
  const poplar::Tensor found = matches(graph, indices, encoded, prog, debug);
  mapWithOutput(graph, expr::TernaryOpType::SELECT, on.reshape({}), off.reshape({}), found, encoded, prog, debug);
}

void iota(poplar::Graph& graph, const poplar::Tensor& t, unsigned start_integer, poplar::program::Sequence& prog,
          const poplar::DebugContext& debug) {
  addIota(graph, t, start_integer, prog, debug);
}

void iota(poplar::Graph& graph, const poplar::Tensor& t, int start_integer, poplar::program::Sequence& prog,
          const poplar::DebugContext& debug) {
  addIota(graph, t, start_integer, prog, debug);
}

}  // namespace popops
