// Poplar's Graph: new variables like others, and the order in which tensors lie in memory.
#include <algorithm>
#include <numeric>
#include <poplar/Graph.hpp>

#include "graph/graph_data.hpp"
#include "tensor/spans.hpp"

namespace poplar {
namespace {

using ipu_model::GraphData;
using ipu_model::kNoTile;
using ipu_model::Run;
using ipu_model::Span;
using ipu_model::viewOf;

// The runs' elements, renumbered: `spans` hold them all, and `starts` are the new numbers of the spans' first elements.
std::vector<Run> renumbered(const std::vector<Run>& runs, const std::vector<Span>& spans,
                            const std::vector<std::size_t>& starts, unsigned variable) {
  std::vector<Run> result;
  for (const Run& run : runs) {
    for (std::size_t done = 0; done < run.count;) {
      const Span* span = ipu_model::spanWith(spans, run.variable, run.at(done));
      const std::size_t last = run.at(run.count - 1);
      const std::size_t count = last >= span->begin && last < span->end ? run.count - done : 1;
      const std::size_t start = starts[static_cast<std::size_t>(span - spans.data())];
      ipu_model::appendRun(result, {variable, start + run.at(done) - span->begin, count, run.stride});
      done += count;
    }
  }
  return result;
}

// A variable with the memory order and tiles of `tensor`, viewed like `tensor`.
Tensor cloneInOrder(GraphData& graph, const Type& type, const Tensor& tensor, const std::string& name) {
  const std::vector<Run> runs = viewOf(tensor).runs();
  std::vector<Span> spans;
  ipu_model::appendSpans(runs, spans);
  ipu_model::mergeSpans(spans);
  std::vector<std::size_t> starts;
  std::size_t elements = 0;
  for (const Span& span : spans) {
    starts.push_back(elements);
    elements += span.end - span.begin;
  }
  const unsigned id = graph.addVariable(type, elements, name);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const Span& span = spans[i];
    ipu_model::TileMap& tiles = graph.variables[id].tiles;
    graph.variables[span.variable].tiles.forEach(
        span.begin, span.end, [&](std::size_t begin, std::size_t end, unsigned tile) {
          if (tile != kNoTile) tiles.set(starts[i] + begin - span.begin, starts[i] + end - span.begin, tile);
        });
  }
  return Tensor(ipu_model::viewOfRuns(&graph, type, renumbered(runs, spans, starts, id), tensor.shape()));
}

// Where a run's elements lie: sorts those of a variable next to each other.
struct Place {
  unsigned variable;
  std::size_t element;
  std::size_t index;  // in the flattened tensor
  bool operator<(const Place& other) const {
    return variable != other.variable ? variable < other.variable : element < other.element;
  }
};

std::vector<Place> placesOf(const Tensor& flat, ArrayRef<Interval> regions) {
  std::vector<Place> places;
  for (const Interval& region : regions) {
    std::size_t index = region.begin();
    for (const Run& run : viewOf(flat.slice(region)).runs()) {
      for (std::size_t i = 0; i < run.count; ++i) places.push_back({run.variable, run.at(i), index++});
    }
  }
  std::stable_sort(places.begin(), places.end());
  return places;
}

}  // namespace

Tensor Graph::clone(const Type& type, const Tensor& tensor, const DebugContext& debugContext,
                    TensorCloneMethod method) {
  const bool new_order = method == TensorCloneMethod::CREATE_NEW_ORDER ||
                         (method == TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES && tensor.containsAliases());
  if (!new_order) return cloneInOrder(*data_, type, tensor, debugContext.getPathName());
  const Tensor copy = addVariable(type, tensor.shape(), debugContext);
  bool complete = true;
  Graph all = getTopLevelGraph();
  all.setTileMapping(copy, all.getTileMapping(tensor, &complete));
  return copy;
}

Tensor Graph::clone(const Tensor& tensor, const DebugContext& debugContext, TensorCloneMethod method) {
  return clone(tensor.elementType(), tensor, debugContext, method);
}

Tensor Graph::cloneN(const Type& type, const Tensor& tensor, std::size_t N, const DebugContext& debugContext,
                     TensorCloneMethod method) {
  std::vector<Tensor> copies;
  for (std::size_t i = 0; i < N; ++i) copies.push_back(clone(type, tensor, debugContext, method).expand({0}));
  return concat(copies);
}

Tensor Graph::cloneN(const Tensor& tensor, std::size_t N, const DebugContext& debugContext, TensorCloneMethod method) {
  return cloneN(tensor.elementType(), tensor, N, debugContext, method);
}

std::vector<std::vector<Interval>> Graph::getSortedContiguousRegions(const Tensor& tensor, ArrayRef<Interval> regions,
                                                                     bool removeAliasedIntervals) const {
  const Tensor flat = tensor.flatten();
  std::vector<std::vector<Interval>> result;
  Place last{};
  for (const Place& place : placesOf(flat, regions)) {
    const bool first = result.empty();
    const bool same = !first && place.variable == last.variable && place.element == last.element;
    if (same && removeAliasedIntervals) continue;
    const bool next = !first && place.variable == last.variable && place.element == last.element + 1;
    if (!next) {
      result.push_back({{place.index, place.index + 1}});
    } else if (result.back().back().end() == place.index) {
      result.back().back() = {result.back().back().begin(), place.index + 1};
    } else {
      result.back().emplace_back(place.index, place.index + 1);
    }
    last = place;
  }
  return result;
}

void Graph::reorderToSimplify(Tensor* ref, ArrayRef<Tensor*> others, bool) const {
  std::vector<Interval> order;
  const Tensor flat = ref->flatten();
  for (const auto& region : getSortedContiguousRegions(flat, Interval(0, flat.numElements()))) {
    order.insert(order.end(), region.begin(), region.end());
  }
  const auto reordered = [&order](const Tensor& tensor) {
    return order.empty() ? tensor : concat(tensor.slices(ArrayRef<Interval>(order)));
  };
  *ref = reordered(flat);
  for (Tensor* other : others) *other = reordered(other->flatten());
}

Tensor Graph::findUnbroadcastTensor(const Tensor& tensor) const {
  Tensor result = tensor;
  for (unsigned d = 0; d < tensor.rank(); ++d) {
    if (viewOf(result).strides[d] == 0 && result.dim(d) > 1) result = result.slice(0, 1, d);
  }
  return result;
}

}  // namespace poplar
