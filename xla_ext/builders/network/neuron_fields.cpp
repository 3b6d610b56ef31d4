// What the vertices of neurons and readouts have in common, over a block of steps at once or step by step. A layer has
// no tensors for fields that its vertices lack.
#include "builders/network/rows.hpp"

namespace snnjax::builders {

namespace {

std::vector<State> statesOfRun(const LayerTile& at) {
  return {{"num_steps", at.of.plan.block_steps}, {"batch", at.samples()}, {"neurons", at.layer().tiles.columns}};
}

}  // namespace

std::vector<Field> neuronFields(const LayerTile& at, const Tensor& current, const Offered& offered) {
  const LayerTensors& own = at.of.tensors;
  return {{"current", at.ownRows(current)},
          {"bias", at.ofGroup(own.bias)},
          {"decay", at.ofGroup(own.decay)},
          {"gain", at.ofGroup(own.gain)},
          {"lengths", at.ownRows(own.lengths)},
          {"block", at.of.pass.block.at(at.tile())},
          {"membranes", at.ownStates(own.membranes)},
          {"threshold", at.ofGroup(own.threshold)},
          {"second_threshold", at.ofGroup(own.second_threshold)},
          {"offered", at.ownRows(offered.rows)},
          {"marks", at.ownRows(offered.marks)},
          {"counts", at.ownStates(own.counts)},
          {"second", at.ofGroup(own.second)},
          {"w", at.ownStates(own.second_states)}};
}

std::vector<State> neuronStates(const LayerTile& at) {
  const NeuronOptions& neuron = at.layer().neuron;
  if (at.layer().leaky) return statesOfRun(at);
  const std::vector<State> states = with(statesOfRun(at), {{"offered_stride", offeredStride(at.layer().tiles.columns)},
                                                           {"reset", static_cast<unsigned char>(neuron.reset)},
                                                           {"keep_history", at.of.plan.keepsMembranes(at.of.l)}});
  if (!neuron.second_state) return states;
  return with(states, {{"keep_second", at.of.plan.keepsSecond(at.of.l)}, {"raises", neuron.raises_threshold}});
}

std::vector<Field> gradientFields(const LayerTile& at, const Tensor& g_current) {
  const LayerPlan& layer = at.layer();
  const LayerTensors& tensors = at.of.tensors;
  const LayerCotangents& own = at.of.cotangents();
  const bool reads_membranes = !layer.leaky || layer.learns_constants,
             reads_second = layer.learns_constants || layer.neuron.raises_threshold;
  const Tensor w = at.ownStates(tensors.second_states);
  return {{"decay", at.ofGroup(tensors.decay)},
          {"gain", at.ofGroup(tensors.gain)},
          {"block", at.of.pass.block.at(at.tile())},
          {"lengths", at.ownRows(tensors.lengths)},
          {"g_v", at.ownStates(own.g_v)},
          {"g_current", at.ownRows(g_current)},
          {"g_bias", at.ownStates(own.g_bias)},
          {"g_decay", at.ownStates(own.g_decay)},
          {"g_gain", at.ownStates(own.g_gain)},
          {"g_counts", at.ownStates(own.g_counts)},
          {"threshold", at.ofGroup(tensors.threshold)},
          {"second_threshold", at.ofGroup(tensors.second_threshold)},
          {"membranes", reads_membranes ? at.ownStates(tensors.membranes) : Tensor()},
          {"g_last", at.ownStates(own.g_last)},
          {"g_threshold", at.ownStates(own.g_threshold)},
          {"second", at.ofGroup(tensors.second)},
          {"w", reads_second || !w.valid() ? w : w.slice(0, 0)},
          {"g_w", at.ownStates(own.g_w)},
          {"g_last_w", at.ownStates(own.g_last_w)},
          {"g_second", at.ownStates(own.g_second)}};
}

std::vector<State> gradientStates(const LayerTile& at) {
  const LayerPlan& layer = at.layer();
  const bool learns = layer.learns_constants;
  if (layer.leaky) return with(statesOfRun(at), {{"starts", startsAlone(at.of)}});
  const std::vector<State> states = with(statesOfRun(at), surrogateStates(layer.neuron));
  if (layer.neuron.second_state) return with(states, {{"raises", learns || layer.neuron.raises_threshold}});
  return learns || layer.recurrent ? states : with(states, {{"starts", startsAlone(at.of)}});
}

ThresholdSums thresholdSums(const LayerPass& of, bool with_coupling) {
  const LayerCotangents& own = of.cotangents();
  const auto or_unused = [&](const Tensor& sums) {
    return sums.valid() ? sums : addStates(of.graph, of.plan, of.l, 1, "layer" + std::to_string(of.l) + "/unused");
  };
  const std::size_t row = std::size_t{of.plan.options.batch} * of.layer.tiles.columns,
                    first = (ThresholdCoupling - WDecay) * row;
  ThresholdSums sums = {or_unused(own.g_threshold), {}};
  if (with_coupling) {
    sums.coupling = or_unused(own.g_second.valid() ? own.g_second.slice(first, first + row, 1) : Tensor());
  }
  return sums;
}

std::vector<State> surrogateStates(const NeuronOptions& neuron) {
  return {{"reset", static_cast<unsigned char>(neuron.reset)},
          {"detach_reset", neuron.detach_reset},
          {"surrogate", static_cast<unsigned char>(neuron.surrogate)},
          {"slope", neuron.slope}};
}

bool startsAlone(const LayerPass& of) {
  return of.plan.num_blocks == 1 && !of.layer.learns_constants && !of.layer.recurrent && !of.layer.neuron.second_state;
}

}  // namespace snnjax::builders
