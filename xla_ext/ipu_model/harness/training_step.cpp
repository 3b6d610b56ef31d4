#include <algorithm>
#include <builders/training_step.hpp>

#include "network_arrays.hpp"
#include "ops.hpp"

namespace snnjax::harness {
namespace {

using builders::NetworkPlan;

builders::TrainingOptions trainingOptions(const Call& call) {
  builders::TrainingOptions options;
  options.pooling = call.choice<Pooling>("pooling");
  options.beta1 = static_cast<float>(call.number("beta1"));
  options.beta2 = static_cast<float>(call.number("beta2"));
  options.epsilon = static_cast<float>(call.number("epsilon"));
  options.learns_bias = call.flag("learns_bias");
  return options;
}

NetworkPlan planOf(const Call& call, const Model& model) {
  builders::NetworkOptions options = networkOptions(call);
  options.keeps_record = true;
  options.has_moments = true;
  return planOf(options, model);
}

}  // namespace

// `num_updates` steps on the same samples.
Report runTrainingStep(const Call& call) {
  Model model(call);
  const NetworkPlan plan = planOf(call, model);
  const builders::TrainingOptions options = trainingOptions(call);
  const builders::TrainingStep training = builders::addTrainingStep(model.graph(), plan, options);
  const builders::NetworkTensors& network = training.tensors.network;
  const std::size_t batch = plan.options.batch;
  const unsigned num_updates = call.size("num_updates");

  const builders::ListPlan& inputs = plan.lists.front();
  std::vector<std::uint16_t> events = inputs.dense ? std::vector<std::uint16_t>() : eventsOf(call, plan);
  std::vector<float> values = inputs.valued ? valuesOf(call, plan) : std::vector<float>();
  const std::span<std::int32_t> labels = call.integers("labels", batch);
  const std::span<float> loss = call.floats("loss", num_updates * batch);
  if (!inputs.dense) model.connect(builders::kInputStream, std::as_writable_bytes(std::span(events)));
  if (inputs.valued) model.connect(builders::kValueStream, std::as_writable_bytes(std::span(values)));
  model.connect(builders::kLabelStream, std::as_writable_bytes(labels));
  model.connect(builders::kLossStream, std::as_writable_bytes(loss));
  model.write(network.lengths, call.integers("lengths", batch));
  model.write(training.tensors.learning_rate, call.floats("learning_rate", 1));
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    writeParameters(model, call, plan, l, network.layers[l]);
    model.read(network.layers[l].weights);
    model.read(network.layers[l].bias);
    if (plan.layers[l].recurrent) model.read(network.layers[l].recurrent);
  }
  const poplar::program::Repeat updates(num_updates, training.step);
  Report report = model.run({training.prepare, updates});
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    takeBlocks(model, call, numbered("new_weights", l), plan.layers[l], plan.layers[l].inputs, 1);
    takeBlocks(model, call, numbered("new_bias", l), plan.layers[l], 1);
    if (plan.layers[l].recurrent) {
      takeBlocks(model, call, numbered("new_recurrent", l), plan.layers[l], plan.layers[l].neurons, 1);
    }
  }
  return report;
}

}  // namespace snnjax::harness
