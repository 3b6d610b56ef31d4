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

// Numbers of the inverse error function's argument lie in [-limit, limit).
Tensor normalWithin(Draw draw, float limit, double mean, double deviation) {
  return draw("snnjax::RandomNormal", [&](const poplar::VertexRef& vertex) {
    // At -1 itself the function is infinite.
    draw.graph.setInitialValue(vertex["low"], limit == 1.0F ? std::nextafter(-1.0F, 0.0F) : -limit);
    draw.graph.setInitialValue(vertex["high"], limit);
    draw.graph.setInitialValue(vertex["mean"], mean);
    draw.graph.setInitialValue(vertex["deviation"], deviation);
  });
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

Tensor bernoulli(poplar::Graph& graph, const Tensor* master_seed, std::uint32_t seed_modifier, const Tensor& reference,
                 const poplar::Type& out_type, double probability, Sequence& prog, const poplar::DebugContext& debug) {
  checkType(out_type, true, "bernoulli");
  Draw draw{graph, master_seed, seed_modifier, reference, out_type, prog, debug};
  return draw("snnjax::RandomBernoulli",
              [&](const poplar::VertexRef& vertex) { graph.setInitialValue(vertex["probability"], probability); });
}

Tensor normal(poplar::Graph& graph, const Tensor* master_seed, std::uint32_t seed_modifier, const Tensor& reference,
              const poplar::Type& out_type, double mean, double standard_deviation, Sequence& prog,
              const poplar::DebugContext& debug) {
  checkType(out_type, false, "normal");
  return normalWithin({graph, master_seed, seed_modifier, reference, out_type, prog, debug}, 1.0F, mean,
                      standard_deviation);
}

Tensor truncatedNormal(poplar::Graph& graph, const Tensor* master_seed, std::uint32_t seed_modifier,
                       const Tensor& reference, const poplar::Type& out_type, double mean, double standard_deviation,
                       double alpha, Sequence& prog, const poplar::DebugContext& debug) {
  checkType(out_type, false, "truncatedNormal");
  const auto limit = static_cast<float>(std::erf(alpha / std::sqrt(2.0)));
  return normalWithin({graph, master_seed, seed_modifier, reference, out_type, prog, debug}, limit, mean,
                      standard_deviation);
}

Tensor dropout(poplar::Graph& graph, const Tensor* seed, std::uint32_t seed_modifier, const Tensor& input,
               const Tensor& reference, double keep_probability, double scale, Sequence& prog,
               const poplar::DebugContext& debug) {
  const Tensor mask =
      bernoulli(graph, seed, seed_modifier, reference, input.elementType(), keep_probability, prog, debug);
  namespace expr = popops::expr;
  popops::mapInPlace(graph, expr::_1 * (expr::_2 * scale), {mask, input}, prog, debug);
  return mask;
}

void setSeed(poplar::Graph& graph, const Tensor& master_seed, std::uint32_t seed_modifier, Sequence& prog,
             const poplar::DebugContext& debug) {
  poplibs::setKeyState(graph, master_seed, seed_modifier, prog, debug);
}

}  // namespace poprand
