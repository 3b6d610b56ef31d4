#include <popops/DynamicSlice.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/VertexTemplates.hpp>
#include <poputil/exceptions.hpp>

#include "poplibs/popops/slice_columns.hpp"

namespace popops {
namespace {

using poplibs::TilePart;
using Shape = std::vector<std::size_t>;

void checkSlice(const Shape& shape, const Shape& dims, const Shape& sizes, std::size_t offsets, const char* function) {
  bool fits = dims.size() == sizes.size() && offsets >= dims.size();
  for (std::size_t i = 0; fits && i < dims.size(); ++i) fits = dims[i] < shape.size() && sizes[i] <= shape[dims[i]];
  if (fits) return;
  throw poputil::poplibs_error(
      "popops::" + std::string(function) + ": `dims, sizes, offset` must have one entry each per sliced dimension of " +
      poplibs::toString(shape) + ", sizes no larger than it, got dims " + poplibs::toString(dims) + ", sizes " +
      poplibs::toString(sizes) + " and " + std::to_string(offsets) + " offsets. Check the order of the arguments.");
}

// One unsigned number for each dimension; of offsets given for each tile the first.
std::vector<poplar::Tensor> offsetsOf(const poplar::Tensor& offset, std::size_t dims) {
  const poplar::Tensor numbers = (offset.rank() > 1 ? offset.flatten(1, offset.rank()).slice(0, 1, 1) : offset)
                                     .flatten()
                                     .reinterpret(poplar::UNSIGNED_INT);
  std::vector<poplar::Tensor> each;
  for (std::size_t i = 0; i < dims; ++i) each.push_back(numbers[i]);
  return each;
}

Shape withDim(Shape shape, std::size_t dim, std::size_t size) {
  shape[dim] = size;
  return shape;
}

struct Vertices {
  poplar::Graph& graph;
  poplar::program::Sequence& prog;
  poplar::DebugContext debug;

  // One vertex for each tile's columns of `table`; the others are tables with the same columns.
  void add(const std::string& codelet, const poplar::Tensor& table, const std::string& others_field,
           const poplar::Tensor& others, const std::vector<std::pair<std::string, poplar::Tensor>>& fields,
           bool has_first_row) {
    const poplar::ComputeSet cs = graph.addComputeSet({debug, "slice"});
    for (const TilePart& part : poplibs::columnsByTile(graph, table)) {
      const poplar::VertexRef vertex = graph.addVertex(cs, codelet);
      graph.connect(vertex["table"], poplibs::columnsOf(table, part));
      graph.connect(vertex[others_field], poplibs::columnsOf(others, part));
      for (const auto& [field, tensor] : fields) graph.connect(vertex[field], tensor);
      graph.setInitialValue(vertex["rows"], static_cast<unsigned>(table.dim(0)));
      graph.setInitialValue(vertex["width"], static_cast<unsigned>(part.numElements()));
      graph.setInitialValue(vertex["count"], static_cast<unsigned>(others.dim(0)));
      if (has_first_row) graph.setInitialValue(vertex["first_row"], 0U);
      graph.setTileMapping(vertex, part.tile);
    }
    prog.add(poplar::program::Execute(cs, debug));
  }

  void slice(const poplar::Tensor& t, const poplar::Tensor& out, const poplar::Tensor& offset, std::size_t dim) {
    add(poputil::templateVertex("snnjax::DynamicSlice", t.elementType()), poplibs::asTable(t, dim), "out",
        poplibs::asTable(out, dim), {{"offset", offset}}, false);
  }

  poplar::Tensor sliceOf(const poplar::Tensor& t, const poplar::Tensor& offset, std::size_t dim, std::size_t size) {
    const poplar::Tensor table = poplibs::asTable(t, dim);
    const poplar::Tensor out = poplibs::fromTable(
        poplibs::addTable(graph, t.elementType(), size, poplibs::columnsByTile(graph, table), {debug, "slice"}),
        withDim(t.shape(), dim, size), dim);
    slice(t, out, offset, dim);
    return out;
  }

  void update(const poplar::Tensor& t, const poplar::Tensor& values, const poplar::Tensor& offset, std::size_t dim) {
    add(poputil::templateVertex("snnjax::DynamicUpdate", t.elementType()), poplibs::asTable(t, dim), "values",
        poplibs::asTable(values, dim), {{"offset", offset}}, false);
  }
};

bool isEmpty(const poplar::Tensor& t, const Shape& sizes) {
  for (const std::size_t size : sizes) {
    if (size == 0) return true;
  }
  return t.numElements() == 0;
}

}  // namespace

poplar::Tensor dynamicSlice(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& offset,
                            const Shape& dims, const Shape& sizes, poplar::program::Sequence& prog,
                            const poplar::DebugContext& debug) {
  checkSlice(t.shape(), dims, sizes, offset.rank() == 0 ? 1 : offset.dim(0), "dynamicSlice");
  if (isEmpty(t, sizes)) {
    Shape shape = t.shape();
    for (std::size_t i = 0; i < dims.size(); ++i) shape[dims[i]] = sizes[i];
    return graph.addVariable(t.elementType(), shape, debug);
  }
  Vertices vertices{graph, prog, debug};
  const auto offsets = offsetsOf(offset, dims.size());
  poplar::Tensor slice = t;
  for (std::size_t i = 0; i < dims.size(); ++i) slice = vertices.sliceOf(slice, offsets[i], dims[i], sizes[i]);
  return slice;
}

void dynamicSliceWithOutput(poplar::Graph& graph, const poplar::Tensor& output, const poplar::Tensor& t,
                            const poplar::Tensor& offset, const Shape& dims, const Shape& sizes,
                            poplar::program::Sequence& prog, const poplar::DebugContext& debug) {
  if (dims.size() == 1 && !isEmpty(t, sizes)) {
    checkSlice(t.shape(), dims, sizes, offset.rank() == 0 ? 1 : offset.dim(0), "dynamicSliceWithOutput");
    Vertices{graph, prog, debug}.slice(t, output, offsetsOf(offset, 1)[0], dims[0]);
    return;
  }
  prog.add(poplar::program::Copy(dynamicSlice(graph, t, offset, dims, sizes, prog, debug), output, false, debug));
}

void dynamicUpdate(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& s, const poplar::Tensor& offset,
                   const Shape& dims, const Shape& sizes, poplar::program::Sequence& prog,
                   const poplar::DebugContext& debug) {
  checkSlice(t.shape(), dims, sizes, offset.rank() == 0 ? 1 : offset.dim(0), "dynamicUpdate");
  if (dims.empty()) {
    prog.add(poplar::program::Copy(s, t, false, debug));
    return;
  }
  if (isEmpty(t, sizes)) return;
  Vertices vertices{graph, prog, debug};
  const auto offsets = offsetsOf(offset, dims.size());
  // From outside inwards the parts that hold the window are taken out, and put back from inside outwards.
  std::vector<poplar::Tensor> parts{t};
  for (std::size_t i = 0; i + 1 < dims.size(); ++i) {
    parts.push_back(vertices.sliceOf(parts.back(), offsets[i], dims[i], sizes[i]));
  }
  parts.push_back(s);
  for (std::size_t i = dims.size(); i-- > 0;) vertices.update(parts[i], parts[i + 1], offsets[i], dims[i]);
}

}  // namespace popops
