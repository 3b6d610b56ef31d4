#include <popops/Sort.hpp>
#include <poputil/exceptions.hpp>

#include "poplibs/popops/per_tile.hpp"
#include "poplibs/popops/sorted_rows.hpp"

namespace popops {
namespace {

// t with dimension `dim` last, as {rows, length}; and back.
poplar::Tensor asRows(const poplar::Tensor& t, unsigned dim) {
  if (dim >= t.rank()) {
    throw poputil::poplibs_error("popops::sort: `dim` must be below the rank (" + std::to_string(t.rank()) + "), got " +
                                 std::to_string(dim) + ". Count dimensions from 0.");
  }
  const std::size_t length = t.dim(dim);
  return t.dimRoll(dim, t.rank() - 1).reshape({length == 0 ? 0 : t.numElements() / length, length});
}

poplar::Tensor fromRows(const poplar::Tensor& rows, std::vector<std::size_t> shape, unsigned dim) {
  const std::size_t length = shape[dim];
  shape.erase(shape.begin() + dim);
  shape.push_back(length);
  return rows.reshape(shape).dimRoll(static_cast<unsigned>(shape.size()) - 1, dim);
}

struct SortedPair {
  poplar::Tensor keys, values;
};

SortedPair sorted(poplar::Graph& graph, const poplar::Tensor& k, const std::optional<poplar::Tensor>& v, unsigned dim,
                  poplar::program::Sequence& prog, const poplar::DebugContext& debug) {
  if (v && v->shape() != k.shape()) {
    throw poputil::poplibs_error("popops::sortKeyValue: `v` must have the keys' shape " + poplibs::toString(k.shape()) +
                                 ", got " + poplibs::toString(v->shape()) + ". Give one value for each key.");
  }
  const poplar::Tensor rows = asRows(k, dim);
  const poplar::Tensor keys = poplibs::addRows(graph, k.elementType(), rows.dim(0), rows.dim(1), {debug, "keys"});
  prog.add(poplar::program::Copy(rows, keys, false, debug));
  if (!v) {
    poplibs::sortRows(graph, keys, std::nullopt, false, prog, debug);
    return {fromRows(keys, k.shape(), dim), {}};
  }
  const poplar::Tensor values = poplibs::addRows(graph, v->elementType(), rows.dim(0), rows.dim(1), {debug, "values"});
  prog.add(poplar::program::Copy(asRows(*v, dim), values, false, debug));
  poplibs::sortRows(graph, keys, values, false, prog, debug);
  return {fromRows(keys, k.shape(), dim), fromRows(values, k.shape(), dim)};
}

}  // namespace

poplar::Tensor sort(poplar::Graph& graph, const poplar::Tensor& t, unsigned dim, poplar::program::Sequence& prog,
                    const poplar::DebugContext& debug) {
  return sorted(graph, t, std::nullopt, dim, prog, debug).keys;
}

void sortInPlace(poplar::Graph& graph, const poplar::Tensor& t, unsigned dim, poplar::program::Sequence& prog,
                 const poplar::DebugContext& debug) {
  const poplar::Tensor result = sort(graph, t, dim, prog, debug);
  prog.add(poplar::program::Copy(result, t, false, debug));
}

poplar::Tensor sortKeyValue(poplar::Graph& graph, const poplar::Tensor& k, const poplar::Tensor& v, unsigned dim,
                            poplar::program::Sequence& prog, const poplar::DebugContext& debug) {
  return sorted(graph, k, v, dim, prog, debug).values;
}

void sortKeyValueInPlace(poplar::Graph& graph, const poplar::Tensor& k, const poplar::Tensor& v, unsigned dim,
                         poplar::program::Sequence& prog, const poplar::DebugContext& debug) {
  const SortedPair pair = sorted(graph, k, v, dim, prog, debug);
  prog.add(poplar::program::Copy(pair.keys, k, false, debug));
  prog.add(poplar::program::Copy(pair.values, v, false, debug));
}

}  // namespace popops
