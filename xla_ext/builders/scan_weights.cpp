// Gradients of weights, of all samples and steps.
#include <poputil/VertexTemplates.hpp>

#include "scan.hpp"

namespace snnjax::builders {
namespace {

using poplar::Tensor;
using poplar::program::Copy;
using poplar::program::Execute;
using poplar::program::Sequence;

// What each group sums over its samples: [blocks, elements] for each list that it reads.
std::vector<Tensor> sumsOfGroups(poplar::Graph& graph, const NetworkPlan& plan, std::size_t l,
                                 const std::vector<RowsRead>& lists, const Tensor& to, const std::string& name,
                                 Sequence& program) {
  const LayerPlan& layer = plan.layers[l];
  const std::size_t groups = layer.sample_groups.size();
  const poplar::ComputeSet set = graph.addComputeSet(name);
  std::vector<Tensor> partial;
  for (const RowsRead& read : lists) {
    const std::size_t first = partial.size();
    for (std::size_t g = 0; g < groups; ++g) {
      const bool is_sum = groups == 1 && lists.size() == 1;
      partial.push_back(is_sum ? to : addGroup(graph, poplar::FLOAT, layer, g, to.dim(1), name + "/partial"));
    }
    const std::string type = poputil::templateVertex("snnjax::RowsGradient", poplar::UNSIGNED_SHORT, read.valued);
    forEachTile(plan, l, [&](const ScanTile& at) {
      std::vector<Field> fields = read.fields(at);
      fields.push_back({"g_weights", partial[first + at.group][at.block]});
      addVertex(graph, set, type, at.tile(), fields, read.states(at));
    });
  }
  program.add(Execute(set));
  return partial;
}

}  // namespace

Sequence addWeightsGradient(poplar::Graph& graph, const NetworkPlan& plan, std::size_t l,
                            const std::vector<RowsRead>& lists, const Tensor& to, const std::string& what) {
  const LayerPlan& layer = plan.layers[l];
  const std::size_t groups = layer.sample_groups.size(), elements = to.dim(1);
  const auto name = [&](const std::string& part) { return "backward/" + part + std::to_string(l); };
  Sequence program;
  const std::vector<Tensor> partial = sumsOfGroups(graph, plan, l, lists, to, name(what), program);
  if (partial.size() == 1) return program;
  const bool is_spread = groups == 1 || !graph.getTileMapping(to[0])[layer.tileOf(0, groups - 1)].empty();
  const Tensor sums = is_spread ? to : addSpread(graph, poplar::FLOAT, layer, elements, name("sums"));
  const poplar::ComputeSet sum = graph.addComputeSet(name("sum_of_groups"));
  forEachTile(plan, l, [&](const ScanTile& at) {
    const Part part = partOf(layer, elements, at.group);
    if (part.first == part.last) return;
    std::vector<Tensor> in;
    for (const Tensor& each : partial) in.push_back(each[at.block].slice(part.first, part.last));
    addVertex(
        graph, sum, "snnjax::SumRows", at.tile(),
        {{"in", poplar::concat(in)}, {"out", sums[at.block].slice(part.first, part.last)}},
        {{"rows", static_cast<unsigned>(partial.size())}, {"columns", static_cast<unsigned>(part.last - part.first)}});
  });
  program.add(Execute(sum));
  if (!is_spread) program.add(Copy(sums, to));
  return program;
}

}  // namespace snnjax::builders
