#include "loss.hpp"

#include <vector>

#include "vertices.hpp"

namespace snnjax::builders {
namespace {

using poplar::Tensor;
using poplar::program::Copy;
using poplar::program::Execute;
using poplar::program::Sequence;

// [tiles, steps * batch * columns] as [steps, batch, outputs].
Tensor byStep(const NetworkPlan& plan, const Tensor& blocks, std::size_t steps) {
  const LayerPlan& readout = plan.layers.back();
  const std::size_t batch = plan.options.batch;
  return blocks.reshape({readout.tiles.count, steps, batch, readout.tiles.columns})
      .dimShuffle({1, 2, 0, 3})
      .reshape({steps, batch, readout.paddedNeurons()})
      .slice(0, readout.neurons, 2);
}

}  // namespace

Sequence addCrossEntropy(poplar::Graph& graph, const NetworkPlan& plan, const TrainingTensors& tensors,
                         Pooling pooling) {
  const LayerPlan& readout = plan.layers.back();
  const std::size_t steps = plan.options.num_steps;
  // Row 0 of the membranes is the state before the first step.
  const Tensor outputs = byStep(plan, tensors.network.layers.back().membranes, steps + 1).slice(1, steps + 1);
  const poplar::ComputeSet set = graph.addComputeSet("cross_entropy");
  std::vector<Tensor> gradients;
  for (const Home& home : plan.lists.back().homes) {
    const Tensor g_output =
        graph.addVariable(poplar::FLOAT, {steps, home.samples, readout.neurons}, "cross_entropy/g_output");
    graph.setTileMapping(g_output, home.tile);
    gradients.push_back(g_output);
    addVertex(graph, set, "snnjax::CrossEntropy", home.tile,
              {{"outputs", rowsOf(outputs, home, 1)},
               {"labels", rowsOf(tensors.labels, home)},
               {"lengths", rowsOf(tensors.network.lengths, home)},
               {"g_output", g_output},
               {"loss", rowsOf(tensors.loss, home)}},
              {{"num_steps", plan.options.num_steps},
               {"rows", home.samples},
               {"classes", readout.neurons},
               {"batch", plan.options.batch},
               {"over", static_cast<unsigned char>(pooling)}});
  }
  const Tensor g_output = byStep(plan, tensors.cotangents.layers.back().g_output, steps);
  return Sequence({Execute(set), Copy(poplar::concat(gradients, 1), g_output)});
}

}  // namespace snnjax::builders
