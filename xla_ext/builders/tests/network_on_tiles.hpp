// Runs a test's network on the model of a chip with a few tiles.
#pragma once

#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <random>
#include <string>
#include <vector>

#include "../../ipu_model/tests/on_model.hpp"
#include "../host_layout.hpp"
#include "../lif_network.hpp"
#include "../loop.hpp"
#include "network_reference.hpp"

namespace network_test {

using namespace snnjax::builders;

// A network whose weights are multiples of 1/8: sums of few of them are exact, in any order.
inline Network randomNetwork(const NetworkOptions& options, unsigned seed) {
  std::mt19937 random(seed);
  Network network;
  network.options = options;
  const std::size_t count = options.layers.size() + (options.outputs > 0 ? 1 : 0);
  for (std::size_t l = 0; l < count; ++l) {
    network.weights.emplace_back();
    network.bias.emplace_back();
    const unsigned neurons = l < options.layers.size() ? options.layers[l].neurons : options.outputs;
    const unsigned inputs = l == 0 ? options.num_inputs : options.layers[l - 1].neurons;
    const auto eighths = [&](int low, int high) {
      return static_cast<float>(std::uniform_int_distribution<int>(low, high)(random)) / 8.0F;
    };
    for (unsigned i = 0; i < inputs * neurons; ++i) network.weights.back().push_back(eighths(-4, 8));
    for (unsigned j = 0; j < neurons; ++j) network.bias.back().push_back(eighths(-1, 1));
    network.recurrent.emplace_back();
    if (l == options.layers.size() || !options.layers[l].recurrent) continue;
    for (unsigned i = 0; i < neurons * neurons; ++i) network.recurrent.back().push_back(eighths(-4, 4));
  }
  std::uniform_int_distribution<std::int32_t> id(-1, static_cast<std::int32_t>(options.num_inputs) + 1);
  const std::size_t slots = std::size_t{options.num_steps} * options.batch * options.event_capacity;
  const bool dense = options.inputs == Inputs::Dense;
  for (std::size_t i = 0; !dense && i < slots; ++i) network.ids.push_back(id(random));
  std::uniform_int_distribution<int> eighths(-4, 12);
  const std::size_t values = dense ? std::size_t{options.num_steps} * options.batch * options.num_inputs : slots;
  for (std::size_t i = 0; i < values; ++i) {
    network.values.push_back(i % 2 == 0 ? 0.0F : static_cast<float>(eighths(random)) / 8.0F);
  }
  std::uniform_int_distribution<std::uint32_t> length(options.num_steps / 2, options.num_steps);
  for (unsigned b = 0; b < options.batch; ++b) network.lengths.push_back(length(random));
  return network;
}

class OnTiles {
 public:
  OnTiles(const Network& network, unsigned tiles, unsigned ipus = 1, bool trains = true)
      : network_(network), device_(on_model::device(tiles, ipus)), graph_(device_.getTarget()) {
    if (const char* library = std::getenv("SNNJAX_IPU_CODELETS")) graph_.addCodelets(library);
    const poplar::Target& target = graph_.getTarget();
    plan = planNetwork(network.options, target.getNumTiles(), target.getBytesPerTile());
    tensors = addNetworkTensors(graph_, plan);
    std::vector<poplar::program::Program> programs = {addForward(graph_, plan, tensors)};
    if (trains) {
      cotangents = addNetworkCotangents(graph_, plan);
      programs.push_back(addBackward(graph_, plan, tensors, cotangents));
    }
    createHandles(trains);
    engine_ = std::make_unique<poplar::Engine>(graph_, programs);
    engine_->load(device_);
    writeParameters();
  }

  void forward() { engine_->run(0); }
  void backward() { engine_->run(1); }

  // Membranes [num_steps, batch, neurons] after each step.
  Row membranes(std::size_t l) {
    const LayerPlan& layer = plan.layers[l];
    const std::size_t steps = plan.options.num_steps, batch = plan.options.batch;
    const Row all = fromTiles(layer, read("membranes", l, tensors.layers[l].membranes), (steps + 1) * batch);
    return Row(all.begin() + static_cast<std::ptrdiff_t>(batch * layer.neurons), all.end());
  }

  HostLists lists(std::size_t l) {
    std::vector<std::uint16_t> history(tensors.lists[l].history.numElements());
    engine_->readTensor("history" + std::to_string(l), history.data(), history.data() + history.size());
    return listsFromHomes(plan, l, history);
  }

  void writeOutputGradient(const Row& g) {
    const std::size_t rows = std::size_t{plan.options.num_steps} * plan.options.batch;
    write("g_output", plan.layers.size() - 1, toTiles(plan.layers.back(), g, rows));
  }

  Row weightsGradient(std::size_t l) {
    return fromTiles(plan.layers[l], read("g_weights", l, cotangents.layers[l].g_weights), network_.inputs(l), 1);
  }

  Row recurrentGradient(std::size_t l) {
    const unsigned neurons = plan.layers[l].neurons;
    return fromTiles(plan.layers[l], read("g_recurrent", l, cotangents.layers[l].g_recurrent), neurons, 1);
  }
  // As the values lie.
  Row inputsGradient() { return valuesFromHomes(plan, 0, network_.ids, read("g_inputs", 0, cotangents.g_inputs)); }

  poplar::Engine& engine() { return *engine_; }

  NetworkPlan plan;
  NetworkTensors tensors;
  NetworkCotangents cotangents;

 private:
  void createHandles(bool trains) {
    const auto both = [&](const std::string& name, const poplar::Tensor& tensor) {
      if (!tensor.valid()) return;
      graph_.createHostWrite(name, tensor);
      graph_.createHostRead(name, tensor);
    };
    both("lengths", tensors.lengths);
    for (std::size_t l = 0; l < plan.layers.size(); ++l) {
      const std::string n = std::to_string(l);
      const LayerTensors& own = tensors.layers[l];
      both("weights" + n, own.weights);
      both("bias" + n, own.bias);
      both("decay" + n, own.decay);
      both("gain" + n, own.gain);
      both("threshold" + n, own.threshold);
      both("second_threshold" + n, own.second_threshold);
      both("membranes" + n, own.membranes);
      both("recurrent" + n, own.recurrent);
      if (!trains) continue;
      const LayerCotangents& g = cotangents.layers[l];
      both("g_output" + n, g.g_output);
      both("g_counts" + n, g.g_counts);
      both("g_last" + n, g.g_last);
      both("g_v" + n, g.g_v);
      both("g_weights" + n, g.g_weights);
      both("g_bias" + n, g.g_bias);
      both("g_recurrent" + n, g.g_recurrent);
      both("g_last_spikes" + n, g.g_last_spikes);
    }
    for (std::size_t l = 0; l < plan.lists.size(); ++l) both("history" + std::to_string(l), tensors.lists[l].history);
    both("values0", tensors.lists.front().values_history);
    if (trains) both("g_inputs0", cotangents.g_inputs);
  }

  void writeParameters() {
    engine_->writeTensor("lengths", network_.lengths.data(), network_.lengths.data() + network_.lengths.size());
    if (!plan.lists.front().dense) {
      const std::vector<std::uint16_t> events = listsToHomes(plan, 0, network_.ids);
      engine_->writeTensor("history0", events.data(), events.data() + events.size());
    }
    if (plan.lists.front().valued) write("values", 0, valuesToHomes(plan, 0, network_.ids, network_.values));
    for (std::size_t l = 0; l < plan.layers.size(); ++l) {
      const LayerPlan& layer = plan.layers[l];
      write("weights", l, toTiles(layer, network_.weights[l], layer.inputs, 1));
      write("bias", l, constantsToTiles(layer, network_.bias[l]));
      write("decay", l, constantsToTiles(layer, std::vector{network_.decay}));
      write("gain", l, constantsToTiles(layer, std::vector{network_.gain}));
      write("membranes", l, Row(tensors.layers[l].membranes.numElements(), 0.0F));
      if (!layer.leaky) {
        write("threshold", l, constantsToTiles(layer, std::vector{network_.threshold}));
        // A spiking output is not listed: all its neurons take part.
        const bool is_output = l + 1 == network_.count();
        const float second = is_output ? -std::numeric_limits<float>::infinity() : network_.second_threshold;
        write("second_threshold", l, constantsToTiles(layer, std::vector{second}));
      }
      if (layer.recurrent) write("recurrent", l, toTiles(layer, network_.recurrent[l], layer.neurons, 1));
      if (cotangents.layers.empty()) continue;
      const LayerCotangents& g = cotangents.layers[l];
      clear("g_counts", l, g.g_counts);
      clear("g_last", l, g.g_last);
      clear("g_v", l, g.g_v);
      clear("g_weights", l, g.g_weights);
      clear("g_bias", l, g.g_bias);
      clear("g_recurrent", l, g.g_recurrent);
      clear("g_last_spikes", l, g.g_last_spikes);
    }
  }

  void clear(const std::string& name, std::size_t l, const poplar::Tensor& tensor) {
    if (tensor.valid()) write(name, l, Row(tensor.numElements(), 0.0F));
  }
  void write(const std::string& name, std::size_t l, const Row& values) {
    engine_->writeTensor(name + std::to_string(l), values.data(), values.data() + values.size());
  }
  Row read(const std::string& name, std::size_t l, const poplar::Tensor& tensor) {
    Row values(tensor.numElements());
    engine_->readTensor(name + std::to_string(l), values.data(), values.data() + values.size());
    return values;
  }

  Network network_;
  poplar::Device device_;
  poplar::Graph graph_;
  std::unique_ptr<poplar::Engine> engine_;
};

}  // namespace network_test
