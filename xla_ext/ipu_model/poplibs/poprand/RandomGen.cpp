#include <cmath>
#include <popops/ElementWise.hpp>
#include <poprand/RandomGen.hpp>
#include <poputil/VertexTemplates.hpp>
#include <poputil/exceptions.hpp>

#include "poplibs/popops/per_tile.hpp"
#include "poplibs/poprand/key.hpp"

namespace poprand {
namespace {

using poplar::Tensor;
using poplar::program::Sequence;

struct Draw {
  poplar::Graph& graph;
  const Tensor* seed;
  std::uint32_t modifier;
  const Tensor& reference;
  poplar::Type type;
  Sequence& prog;
  poplar::DebugContext debug;

  // One vertex for each contiguous region, told its place; `configure` sets what the distribution needs.
  template <class Configure>
  Tensor operator()(const std::string& codelet, Configure configure) {
    const Tensor out = poplibs::cloneOnTiles(graph, type, reference, {debug, "random"});
    const Tensor key = poplibs::drawKey(graph, seed, modifier, prog, debug);
    const poplar::ComputeSet cs = graph.addComputeSet({debug, "random"});
    for (const poplibs::TilePart& part : poplibs::partsByTile(graph.getTileMapping(out))) {
      for (const poplar::Interval& region : part.regions) {
        const poplar::VertexRef vertex = graph.addVertex(cs, poputil::templateVertex(codelet, type));
        graph.connect(vertex["key"], key);
        graph.connect(vertex["out"], out.flatten().slice(region));
        graph.setInitialValue(vertex["count"], static_cast<unsigned>(region.size()));
        graph.setInitialValue(vertex["first"], static_cast<unsigned>(region.begin()));
        graph.setInitialValue(vertex["first_high"], static_cast<unsigned>(region.begin() >> 32U));
        configure(vertex);
        graph.setTileMapping(vertex, part.tile);
      }
    }
    prog.add(poplar::program::Execute(cs, debug));
    return out;
  }
};

void checkType(const poplar::Type& type, bool integers, const char* function) {
  if (type == poplar::FLOAT || type == poplar::HALF || (integers && type == poplar::INT)) return;
  throw poputil::poplibs_error("poprand::" + std::string(function) + ": `out_type` must be float" +
                               (integers ? ", half or int" : " or half") + ", got " + type.toString() +
                               ". Cast the result.");
}

}  // namespace

Tensor uniform(poplar::Graph& graph, const Tensor* master_seed, std::uint32_t seed_modifier, const Tensor& reference,
               const poplar::Type& out_type, double min_value, double max_value, Sequence& prog,
               const poplar::DebugContext& debug) {
  checkType(out_type, true, "uniform");
  Draw draw{graph, master_seed, seed_modifier, reference, out_type, prog, debug};
  return draw("snnjax::RandomUniform", [&](const poplar::VertexRef& vertex) {
    if (out_type == poplar::INT) {  // the codelet's upper limit is exclusive, and wraps around
      const auto high = static_cast<std::uint32_t>(static_cast<std::int64_t>(max_value)) + 1U;
      graph.setInitialValue(vertex["low"], static_cast<int>(min_value));
      graph.setInitialValue(vertex["high"], static_cast<int>(high));
    } else {
      graph.setInitialValue(vertex["low"], min_value);
      graph.setInitialValue(vertex["high"], max_value);
    }
  });
}

}  // namespace poprand
