#include "network_arrays.hpp"

#include <algorithm>
#include <builders/host_layout.hpp>

namespace snnjax::harness {

std::string numbered(const char* name, std::size_t layer) { return name + std::to_string(layer); }

builders::NetworkOptions networkOptions(const Call& call) {
  builders::NetworkOptions options;
  options.num_steps = call.size("num_steps");
  options.batch = call.size("batch");
  options.num_inputs = call.size("num_inputs");
  options.event_capacity = call.size("event_capacity");
  for (unsigned l = 0; l < call.size("num_layers"); ++l) {
    const double capacity = call.number(numbered("capacity", l));  // negative: none
    options.layers.push_back(
        {.neurons = call.size(numbered("neurons", l)), .recurrent = call.has(numbered("recurrent", l))});
    if (capacity >= 0) options.layers.back().capacity = static_cast<unsigned>(capacity);
  }
  options.outputs = static_cast<unsigned>(call.number("outputs"));
  options.inputs = call.choice<builders::Inputs>("inputs");
  options.reset = call.choice<Reset>("reset");
  options.detach_reset = call.flag("detach_reset");
  options.surrogate = call.choice<Surrogate>("surrogate");
  options.slope = static_cast<float>(call.number("slope"));
  options.half_weights = call.flag("half");
  options.equal_columns = call.flag("equal_columns");
  return options;
}

builders::NetworkPlan planOf(const builders::NetworkOptions& options, const Model& model) {
  const poplar::Target& target = model.graph().getTarget();
  return builders::planNetwork(options, target.getNumTiles(), target.getBytesPerTile());
}

std::span<const std::int32_t> eventIds(const Call& call, const builders::NetworkPlan& plan) {
  const std::size_t records = std::size_t{plan.options.num_steps} * plan.options.batch;
  if (plan.lists.front().dense) return {};
  return call.integers("ids", records * plan.lists.front().capacity);
}

std::vector<std::uint16_t> eventsOf(const Call& call, const builders::NetworkPlan& plan) {
  return builders::listsToHomes(plan, 0, eventIds(call, plan));
}

std::vector<float> valuesOf(const Call& call, const builders::NetworkPlan& plan) {
  const std::size_t records = std::size_t{plan.options.num_steps} * plan.options.batch;
  return builders::valuesToHomes(plan, 0, eventIds(call, plan),
                                 call.floats("values", records * plan.lists.front().capacity));
}

void writeParameters(Model& model, const Call& call, const builders::NetworkPlan& plan, std::size_t l,
                     const builders::LayerTensors& tensors) {
  const builders::LayerPlan& layer = plan.layers[l];
  const auto constants = [&](const poplar::Tensor& tensor, const char* name) {
    model.write(tensor, builders::constantsToTiles(layer, call.floats(numbered(name, l), layer.neurons)));
  };
  const auto weights = call.floats(numbered("weights", l), std::size_t{layer.inputs} * layer.neurons);
  model.write(tensors.weights, builders::toTiles(layer, weights, layer.inputs, 1));
  if (layer.recurrent) {
    const auto recurrent = call.floats(numbered("recurrent", l), std::size_t{layer.neurons} * layer.neurons);
    model.write(tensors.recurrent, builders::toTiles(layer, recurrent, layer.neurons, 1));
  }
  constants(tensors.bias, "bias");
  constants(tensors.decay, "decay");
  constants(tensors.gain, "gain");
  if (layer.leaky) return;
  constants(tensors.threshold, "threshold");
  constants(tensors.second_threshold, "second_threshold");
}

void takeBlocks(Model& model, const Call& call, const std::string& name, const builders::LayerPlan& layer,
                std::size_t rows, std::size_t extra_rows) {
  const std::vector<float> array = builders::fromTiles(layer, model.nextFloats(), rows, extra_rows);
  std::ranges::copy(array, call.floats(name, rows * layer.neurons).begin());
}

}  // namespace snnjax::harness
