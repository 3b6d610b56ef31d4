// Tensors laid out for slices: all elements of the sliced dimensions on one tile.
#include <algorithm>
#include <popops/DynamicSlice.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/Util.hpp>
#include <poputil/exceptions.hpp>

#include "poplibs/popops/slice_columns.hpp"

namespace popops {
namespace {

using Shape = std::vector<std::size_t>;

// The sliced dimensions first.
std::vector<unsigned> slicedFirst(std::size_t rank, const Shape& dims) {
  std::vector<unsigned> order;
  for (const std::size_t d : dims) order.push_back(static_cast<unsigned>(d));
  for (unsigned d = 0; d < rank; ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) order.push_back(d);
  }
  return order;
}

// A table [rows, columns] as a tensor of this shape, rows being the dimensions `dims`.
poplar::Tensor arrange(const poplar::Tensor& table, const Shape& shape, const Shape& dims) {
  const std::vector<unsigned> order = slicedFirst(shape.size(), dims);
  Shape shuffled;
  std::vector<unsigned> back(order.size());
  for (unsigned i = 0; i < order.size(); ++i) {
    shuffled.push_back(shape[order[i]]);
    back[order[i]] = i;
  }
  return table.reshape(shuffled).dimShuffle(back);
}

std::size_t numRows(const Shape& shape, const Shape& dims) {
  std::size_t rows = 1;
  for (const std::size_t d : dims) rows *= shape.at(d);
  return rows;
}

std::vector<poplibs::TilePart> spreadColumns(const poplar::Graph& graph, const poplar::Type& type, std::size_t columns,
                                             std::size_t min_grain) {
  const auto width = static_cast<unsigned>(graph.getTarget().getVectorWidth(type));
  const auto grain = std::max(static_cast<unsigned>(min_grain), width);
  return poplibs::partsByTile(poputil::calcLinearTileMapping(graph, {columns}, grain, width));
}

}  // namespace

poplar::Tensor createSliceableTensor(poplar::Graph& graph, const poplar::Type& type, const Shape& shape,
                                     const Shape& dims, const Shape&, std::size_t min_grain_size,
                                     const poplar::DebugContext& debug) {
  const std::size_t rows = numRows(shape, dims);
  std::size_t columns = 1;
  for (unsigned d = 0; d < shape.size(); ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) columns *= shape[d];
  }
  if (rows * columns == 0) return graph.addVariable(type, shape, debug);
  const auto parts = spreadColumns(graph, type, columns, min_grain_size);
  return arrange(poplibs::addTable(graph, type, rows, parts, debug), shape, dims);
}

poplar::Tensor createSliceTensor(poplar::Graph& graph, const poplar::Tensor& t, const Shape& dims, const Shape& sizes,
                                 std::size_t num_indices, const poplar::DebugContext& debug) {
  const std::size_t rows = numRows(t.shape(), dims);
  const poplar::Tensor table =
      t.dimShuffle(slicedFirst(t.rank(), dims)).reshape({rows, rows == 0 ? 0 : t.numElements() / rows});
  Shape shape = t.shape();
  for (std::size_t i = 0; i < dims.size(); ++i) shape[dims[i]] = sizes[i];
  const std::size_t slice_rows = numRows(shape, dims);
  const poplar::Tensor slices =
      poplibs::addTable(graph, t.elementType(), num_indices * slice_rows, poplibs::columnsByTile(graph, table), debug);
  std::vector<poplar::Tensor> each;
  for (std::size_t i = 0; i < num_indices; ++i) {
    each.push_back(arrange(slices.slice(i * slice_rows, (i + 1) * slice_rows), shape, dims).expand({0}));
  }
  return poplar::concat(each);
}

}  // namespace popops
