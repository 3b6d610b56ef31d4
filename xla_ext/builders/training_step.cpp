#include "training_step.hpp"

#include <poputil/VertexTemplates.hpp>
#include <string>

#include "../error.hpp"
#include "loop.hpp"
#include "loss.hpp"
#include "vertices.hpp"

namespace snnjax::builders {
namespace {

using poplar::Tensor;
using poplar::program::Copy;
using poplar::program::Execute;
using poplar::program::Sequence;

constexpr unsigned kWorkers = 6;

AdamTensors addMoments(poplar::Graph& graph, const TileRange& tiles, std::size_t size, const std::string& name) {
  return {addBlocks(graph, poplar::FLOAT, tiles, size, name + "/m"),
          addBlocks(graph, poplar::FLOAT, tiles, size, name + "/v"),
          addBlocks(graph, poplar::FLOAT, tiles, std::size_t{2} * kWorkers, name + "/powers")};
}

// One vertex per tile: updates parameters [tiles, size] by their gradients, which it resets to 0.
void addUpdate(poplar::Graph& graph, poplar::ComputeSet set, const TileRange& tiles, const Tensor& parameters,
               const Tensor& gradient, const AdamTensors& adam, const Tensor& learning_rate,
               const TrainingOptions& options) {
  const std::string type = poputil::templateVertex("snnjax::Adam", parameters.elementType());
  for (unsigned i = 0; i < tiles.count; ++i) {
    addVertex(graph, set, type, tiles.first + i,
              {{"weights", parameters[i]},
               {"g", gradient[i]},
               {"m", adam.m[i]},
               {"v", adam.v[i]},
               {"powers", adam.powers[i]},
               {"learning_rate", learning_rate}},
              {{"n", static_cast<unsigned>(adam.m.dim(1))},
               {"beta1", options.beta1},
               {"beta2", options.beta2},
               {"epsilon", options.epsilon}});
  }
}

// The gradient of a bias, summed over the batch: [tiles, columns].
Tensor addBiasSums(poplar::Graph& graph, poplar::ComputeSet set, const NetworkPlan& plan, const LayerPlan& layer,
                   const Tensor& g_bias) {
  const Tensor sums = addBlocks(graph, poplar::FLOAT, layer.tiles, layer.tiles.columns, "bias_gradient");
  for (unsigned i = 0; i < layer.tiles.count; ++i) {
    addVertex(graph, set, "snnjax::SumRows", layer.tiles.first + i, {{"in", g_bias[i]}, {"out", sums[i]}},
              {{"rows", plan.options.batch}, {"columns", layer.tiles.columns}});
  }
  return sums;
}

// The rows of weights that ids name; the last one, of ids out of range, does not learn.
Tensor learningRows(const LayerPlan& layer, const Tensor& blocks) {
  return blocks.slice(0, blocks.dim(1) - layer.tiles.columns, 1);
}

Sequence addUpdates(poplar::Graph& graph, const NetworkPlan& plan, const TrainingTensors& tensors,
                    const TrainingOptions& options) {
  const poplar::ComputeSet update = graph.addComputeSet("adam"), sum = graph.addComputeSet("bias_gradient");
  std::vector<Tensor> bias_gradients;
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    const LayerPlan& layer = plan.layers[l];
    const LayerCotangents& cotangents = tensors.cotangents.layers[l];
    addUpdate(graph, update, layer.tiles, learningRows(layer, tensors.network.layers[l].weights),
              learningRows(layer, cotangents.g_weights), tensors.weights[l], tensors.learning_rate, options);
    if (layer.recurrent) {
      addUpdate(graph, update, layer.tiles, learningRows(layer, tensors.network.layers[l].recurrent),
                learningRows(layer, cotangents.g_recurrent), tensors.recurrent[l], tensors.learning_rate, options);
    }
    if (!options.learns_bias) continue;
    const Tensor g_bias = addBiasSums(graph, sum, plan, layer, cotangents.g_bias);
    addUpdate(graph, update, layer.tiles, tensors.network.layers[l].bias, g_bias, tensors.biases[l],
              tensors.learning_rate, options);
    bias_gradients.push_back(cotangents.g_bias);
  }
  if (!options.learns_bias) return Sequence({Execute(update)});
  return Sequence({Execute(sum), Execute(update), zeros(graph, bias_gradients, "adam/zero_bias_gradient")});
}

TrainingTensors addTensors(poplar::Graph& graph, const NetworkPlan& plan, const TrainingOptions& options) {
  TrainingTensors tensors;
  tensors.network = addNetworkTensors(graph, plan);
  tensors.cotangents = addNetworkCotangents(graph, plan);
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    const LayerPlan& layer = plan.layers[l];
    const std::string name = "layer" + std::to_string(l);
    const std::size_t size = std::size_t{layer.inputs} * layer.tiles.columns;
    tensors.weights.push_back(addMoments(graph, layer.tiles, size, name + "/weights"));
    tensors.recurrent.emplace_back();
    if (layer.recurrent) {
      const std::size_t recurrent = std::size_t{layer.neurons} * layer.tiles.columns;
      tensors.recurrent.back() = addMoments(graph, layer.tiles, recurrent, name + "/recurrent");
    }
    if (options.learns_bias) {
      tensors.biases.push_back(addMoments(graph, layer.tiles, layer.tiles.columns, name + "/bias"));
    }
  }
  const std::vector<Home>& homes = plan.lists.back().homes;
  tensors.labels = addAtHomes(graph, poplar::UNSIGNED_INT, homes, 1, "labels").flatten();
  tensors.loss = addAtHomes(graph, poplar::FLOAT, homes, 1, "loss").flatten();
  tensors.learning_rate = graph.addVariable(poplar::FLOAT, {1}, "learning_rate");
  graph.setTileMapping(tensors.learning_rate, homes.front().tile);
  return tensors;
}

Sequence prepare(poplar::Graph& graph, const NetworkPlan& plan, const TrainingTensors& tensors) {
  std::vector<Tensor> zero, one;
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    const LayerCotangents& own = tensors.cotangents.layers[l];
    for (const Tensor& each :
         {own.g_counts, own.g_last, own.g_output, own.g_weights, own.g_bias, own.g_recurrent, own.g_last_spikes}) {
      if (each.valid()) zero.push_back(each);
    }
    zero.push_back(membraneRow(plan, l, tensors.network.layers[l], 0));
    if (own.g_last_w.valid()) zero.push_back(own.g_last_w);
  }
  for (const std::vector<AdamTensors>& group : {tensors.weights, tensors.recurrent, tensors.biases}) {
    for (const AdamTensors& each : group) {
      if (!each.m.valid()) continue;
      zero.insert(zero.end(), {each.m, each.v});
      one.push_back(each.powers);
    }
  }
  return Sequence({zeros(graph, zero, "prepare/zero"), fill(graph, one, 1.0F, "prepare/powers")});
}

// Starts from 0 in each step: they may be kept in place.
Sequence startSecondStates(poplar::Graph& graph, const NetworkPlan& plan, const NetworkTensors& tensors) {
  std::vector<Tensor> first;
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    if (plan.layers[l].neuron.second_state) first.push_back(secondRow(plan, l, tensors.layers[l], 0));
  }
  return Sequence({zeros(graph, first, "forward/zero_second_states")});
}

void addInputs(poplar::Graph& graph, const TrainingTensors& tensors, Sequence& program) {
  const auto stream = [&](const char* name, const Tensor& into) {
    if (!into.valid()) return;
    // The host reorders the data for the tiles.
    program.add(Copy(graph.addHostToDeviceFIFO(name, into.elementType(), into.numElements()), into, true));
  };
  stream(kInputStream, tensors.network.lists.front().history);
  stream(kValueStream, tensors.network.lists.front().values_history);
  stream(kLabelStream, tensors.labels);
}

}  // namespace

TrainingStep addTrainingStep(poplar::Graph& graph, const NetworkPlan& plan, const TrainingOptions& options) {
  if (!plan.options.keeps_record || plan.options.outputs == 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "training_step: `plan` must keep its record and have a readout, got one without. "
                "Set keeps_record and outputs.");
  }
  TrainingStep training;
  training.tensors = addTensors(graph, plan, options);
  const TrainingTensors& tensors = training.tensors;
  training.prepare = prepare(graph, plan, tensors);
  addInputs(graph, tensors, training.step);
  training.step.add(startSecondStates(graph, plan, tensors.network));
  training.step.add(addForward(graph, plan, tensors.network));
  training.step.add(addCrossEntropy(graph, plan, tensors, options.pooling));
  std::vector<Tensor> g_v;
  for (const LayerCotangents& layer : tensors.cotangents.layers) {
    g_v.push_back(layer.g_v);
    if (layer.g_w.valid()) g_v.push_back(layer.g_w);
  }
  training.step.add(zeros(graph, g_v, "backward/zero_g_v"));
  training.step.add(addBackward(graph, plan, tensors.network, tensors.cotangents));
  training.step.add(addUpdates(graph, plan, tensors, options));
  const poplar::DataStream loss = graph.addDeviceToHostFIFO(kLossStream, poplar::FLOAT, tensors.loss.numElements());
  training.step.add(Copy(tensors.loss, loss, true));
  return training;
}

}  // namespace snnjax::builders
