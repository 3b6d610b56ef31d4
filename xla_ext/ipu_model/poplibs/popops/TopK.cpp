#include <ostream>
#include <popops/TopK.hpp>
#include <poputil/exceptions.hpp>

#include "poplibs/popops/per_tile.hpp"
#include "poplibs/popops/sorted_rows.hpp"

namespace popops {
namespace {

struct Rows {
  std::size_t count, length;
};

Rows rowsOf(const poplar::Tensor& t, const TopKParams& params) {
  if (t.rank() == 0 || params.k > t.dim(t.rank() - 1)) {
    throw poputil::poplibs_error("popops::topKWithPermutation: `k` must be at most the size of the last dimension of " +
                                 poplibs::toString(t.shape()) + ", got " + std::to_string(params.k) +
                                 ". Take fewer elements.");
  }
  const std::size_t length = t.dim(t.rank() - 1);
  return {length == 0 ? 0 : t.numElements() / length, length};
}

// The first k of each row, in the order that was asked for, as {..., k}.
poplar::Tensor firstOf(const poplar::Tensor& rows, const poplar::Tensor& like, const TopKParams& params) {
  poplar::Tensor first = rows.slice(0, params.k, 1);
  const bool reversed = params.sortOrder == (params.largest ? SortOrder::ASCENDING : SortOrder::DESCENDING);
  if (reversed) first = first.reverse(1);
  std::vector<std::size_t> shape = like.shape();
  shape.back() = params.k;
  return first.reshape(shape);
}

poplar::Tensor keyRows(poplar::Graph& graph, const poplar::Tensor& keys, const Rows& rows,
                       poplar::program::Sequence& prog, const poplar::DebugContext& debug) {
  const poplar::Tensor copy = poplibs::addRows(graph, keys.elementType(), rows.count, rows.length, {debug, "keys"});
  prog.add(poplar::program::Copy(keys.flatten(), copy.flatten(), false, debug));
  return copy;
}

}  // namespace

std::ostream& operator<<(std::ostream& stream, const SortOrder& order) {
  return stream << (order == SortOrder::NONE ? "none" : order == SortOrder::ASCENDING ? "ascending" : "descending");
}

std::ostream& operator<<(std::ostream& stream, const TopKParams& params) {
  return stream << "{k=" << params.k << ", largest=" << (params.largest ? "true" : "false")
                << ", sortOrder=" << params.sortOrder << "}";
}

std::pair<poplar::Tensor, poplar::Tensor> topKWithPermutation(poplar::Graph& graph, poplar::program::Sequence& prog,
                                                              const poplar::Tensor& t, const TopKParams& params,
                                                              const poplar::DebugContext& debug) {
  const Rows rows = rowsOf(t, params);
  const poplar::Tensor sorted = keyRows(graph, t, rows, prog, debug);
  const poplar::Tensor indices =
      poplibs::addRows(graph, poplar::UNSIGNED_INT, rows.count, rows.length, {debug, "indices"});
  poplibs::numberRows(graph, indices, prog, debug);
  poplibs::sortRows(graph, sorted, indices, params.largest, prog, debug);
  return {firstOf(sorted, t, params), firstOf(indices, t, params)};
}

}  // namespace popops
