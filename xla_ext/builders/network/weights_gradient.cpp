// Gradients of weights, of all samples and steps.

#include "builders/network/rows.hpp"

namespace snnjax::builders {

WeightsGradient::WeightsGradient(const LayerPass& of, const Tensor& to, const std::string& what)
    : LayerPass(of), to_(to), what_(name(what)) {
  of_groups_ = {to};
  if (layer.sample_groups.size() > 1) {
    of_groups_ = addGroups(graph, FLOAT, layer, what_ + "/of_group", [&](unsigned) { return to.dim(1); });
  }
  pass.zeros.insert(pass.zeros.end(), of_groups_.begin(), of_groups_.end());
}

Program WeightsGradient::add(bool valued, const std::function<std::vector<Field>(const LayerTile&)>& fields,
                             const std::function<std::vector<State>(const LayerTile&)>& states) const {
  const ComputeSet set = graph.addComputeSet(what_);
  const std::string type = templateVertex("snnjax::RowsGradient", valued);
  forEachTile(*this, [&](const LayerTile& at) {
    addVertex(graph, set, type, at.tile(), with(fields(at), {{"g_weights", of_groups_[at.group][at.block]}}),
              states(at));
  });
  return Execute(set);
}

Sequence WeightsGradient::sumGroups() const {
  const std::size_t groups = of_groups_.size(), elements = to_.dim(1);
  if (groups == 1) return Sequence();
  const Tensor sums = spreadOverGroups(graph, layer, to_, what_ + "/sums");
  const ComputeSet set = graph.addComputeSet(what_ + "/sum_of_groups");
  forEachTile(*this, [&](const LayerTile& at) {
    const Part part = partOf(layer, elements, at.group);
    if (part.first == part.last) return;
    std::vector<Tensor> in;
    for (const Tensor& each : of_groups_) in.push_back(each[at.block].slice(part.first, part.last));
    addVertex(graph, set, "snnjax::SumRows", at.tile(),
              {{"in", poplar::concat(in)}, {"out", sums[at.block].slice(part.first, part.last)}},
              {{"rows", static_cast<unsigned>(groups)}, {"columns", static_cast<unsigned>(part.last - part.first)}});
  });
  Sequence program({Execute(set)});
  if (sums != to_) program.add(Copy(sums, to_));
  return program;
}

Tensor spreadOverGroups(Graph& graph, const LayerPlan& layer, const Tensor& to, const std::string& name) {
  const std::size_t groups = layer.sample_groups.size();
  if (groups == 1 || !graph.getTileMapping(to[0])[layer.tileOf(0, groups - 1)].empty()) return to;
  return addSpread(graph, FLOAT, layer, to.dim(1), name);
}

}  // namespace snnjax::builders
