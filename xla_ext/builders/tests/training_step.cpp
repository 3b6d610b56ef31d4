// Training steps on tiles compared with back-propagation, cross-entropy and Adam in scalar C++: the loss before each
// update, and all parameters after the last. Weights are no longer dyadic after the first.
#include "../training_step.hpp"

#include <ipu_model/profile.hpp>

#include "../../ipu_model/tests/check.hpp"
#include "../../ipu_model/tests/on_model.hpp"
#include "../host_layout.hpp"
#include "network_reference.hpp"

namespace network_test {
namespace {

using namespace snnjax::builders;
using snnjax::Pooling;

constexpr float kRate = 0.01F;
constexpr unsigned kUpdates = 3;

// Parameters of each layer in the user's order.
struct Parameters {
  std::vector<Row> weights, recurrent, bias;
};

struct Trained {
  Parameters parameters;
  Row losses;  // of each update, before it
};

// The gradient of the mean loss by the outputs [num_steps, batch, classes] of the readout.
struct CrossEntropy {
  Row g;
  double loss = 0;
};

CrossEntropy crossEntropy(const Network& network, const Row& outputs, const std::vector<unsigned>& labels,
                          Pooling pooling) {
  const std::size_t classes = network.options.outputs, batch = network.options.batch;
  CrossEntropy result{Row(outputs.size(), 0.0F)};
  for (std::size_t b = 0; b < batch; ++b) {
    const std::size_t steps = network.lengths[b];
    const auto at = [&](std::size_t t, std::size_t c) { return (t * batch + b) * classes + c; };
    std::vector<double> logits(classes, pooling == Pooling::MaxOverTime ? -INFINITY : 0.0);
    for (std::size_t t = 0; t < steps; ++t) {
      for (std::size_t c = 0; c < classes; ++c) {
        const double output = outputs[at(t, c)];
        logits[c] = pooling == Pooling::MaxOverTime ? std::max(logits[c], output) : logits[c] + output;
      }
    }
    const double divisor = pooling == Pooling::MeanOverTime ? static_cast<double>(steps) : 1.0;
    double total = 0;
    for (double& logit : logits) total += std::exp(logit /= divisor);
    result.loss += (std::log(total) - logits[labels[b]]) / static_cast<double>(batch);
    for (std::size_t c = 0; c < classes; ++c) {
      const double share = (std::exp(logits[c]) / total - (c == labels[b] ? 1 : 0)) / static_cast<double>(batch);
      std::vector<std::size_t> at_maximum;
      for (std::size_t t = 0; t < steps; ++t) {
        if (pooling != Pooling::MaxOverTime || outputs[at(t, c)] == static_cast<float>(logits[c]))
          at_maximum.push_back(t);
      }
      const double ties = pooling == Pooling::MaxOverTime ? static_cast<double>(at_maximum.size()) : divisor;
      for (const std::size_t t : at_maximum) result.g[at(t, c)] = static_cast<float>(share / ties);
    }
  }
  return result;
}

// Kingma and Ba 2015 (arXiv:1412.6980), of one array.
class Adam {
 public:
  void update(Row& parameters, const Row& g) {
    constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;
    m_.resize(g.size());
    v_.resize(g.size());
    power1_ *= kBeta1;
    power2_ *= kBeta2;
    for (std::size_t i = 0; i < g.size(); ++i) {
      const double slope = g[i];
      m_[i] = kBeta1 * m_[i] + (1 - kBeta1) * slope;
      v_[i] = kBeta2 * v_[i] + (1 - kBeta2) * slope * slope;
      const double step = m_[i] / (1 - power1_) / (std::sqrt(v_[i] / (1 - power2_)) + kEpsilon);
      parameters[i] = static_cast<float>(parameters[i] - static_cast<double>(kRate) * step);
    }
  }

 private:
  std::vector<double> m_, v_;
  double power1_ = 1, power2_ = 1;
};

Trained trainReference(Network network, const std::vector<unsigned>& labels, Pooling pooling, unsigned updates) {
  Row losses;
  std::vector<Adam> weights(network.count()), recurrent(network.count()), bias(network.count());
  for (unsigned update = 0; update < updates; ++update) {
    const Ran ran = runForward(network);
    const CrossEntropy loss = crossEntropy(network, ran.v.back(), labels, pooling);
    losses.push_back(static_cast<float>(loss.loss));
    const Gradients gradients = runBackward(network, ran, loss.g);
    for (std::size_t l = 0; l < network.count(); ++l) {
      weights[l].update(network.weights[l], gradients.weights[l]);
      recurrent[l].update(network.recurrent[l], gradients.recurrent[l]);
      bias[l].update(network.bias[l], gradients.bias[l]);
    }
  }
  return {{network.weights, network.recurrent, network.bias}, losses};
}

// The same on the model.
class TrainingOnTiles {
 public:
  TrainingOnTiles(const Network& network, std::vector<unsigned> labels, Pooling pooling, unsigned tiles,
                  unsigned ipus = 1)
      : network_(network),
        labels_(std::move(labels)),
        device_(on_model::device(tiles, ipus)),
        graph_(device_.getTarget()) {
    if (const char* library = std::getenv("SNNJAX_IPU_CODELETS")) graph_.addCodelets(library);
    NetworkOptions options = network.options;
    options.has_moments = true;
    const poplar::Target& target = graph_.getTarget();
    plan_ = planNetwork(options, target.getNumTiles(), target.getBytesPerTile());
    training_ = addTrainingStep(graph_, plan_, {.pooling = pooling, .learns_bias = true});
    for (const auto& [name, tensor] : tensors()) {
      if (!tensor.valid()) continue;
      graph_.createHostWrite(name, tensor);
      graph_.createHostRead(name, tensor);
    }
  }

  Trained run(unsigned updates, const std::string& threads = "2") {
    poplar::Engine engine(graph_, {training_.prepare, training_.step}, {{"ipu_model.threads", threads}});
    engine.load(device_);
    Row loss(plan_.options.batch), losses, values;
    std::vector<std::uint16_t> events;
    if (!plan_.lists.front().dense) events = listsToHomes(plan_, 0, network_.ids);
    if (plan_.lists.front().valued) values = valuesToHomes(plan_, 0, network_.ids, network_.values);
    if (!events.empty()) engine.connectStream(kInputStream, events.data(), events.data() + events.size());
    if (!values.empty()) engine.connectStream(kValueStream, values.data(), values.data() + values.size());
    engine.connectStream(kLabelStream, labels_.data(), labels_.data() + labels_.size());
    engine.connectStream(kLossStream, loss.data(), loss.data() + loss.size());
    writeAll(engine);
    engine.run(0);
    for (unsigned update = 0; update < updates; ++update) {
      engine.run(1);
      losses.push_back(0.0F);
      for (const float share : loss) losses.back() += share;
    }
    profile = ipu_model::toJson(ipu_model::profileOf(engine));
    return {readAll(engine), losses};
  }

  std::string profile;

 private:
  std::vector<std::pair<std::string, poplar::Tensor>> tensors() const {
    std::vector<std::pair<std::string, poplar::Tensor>> all = {{"lengths", training_.tensors.network.lengths},
                                                               {"learning_rate", training_.tensors.learning_rate}};
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) {
      const LayerTensors& own = training_.tensors.network.layers[l];
      const std::string n = std::to_string(l);
      all.insert(all.end(), {{"weights" + n, own.weights},
                             {"recurrent" + n, own.recurrent},
                             {"bias" + n, own.bias},
                             {"decay" + n, own.decay},
                             {"gain" + n, own.gain},
                             {"threshold" + n, own.threshold},
                             {"second_threshold" + n, own.second_threshold}});
    }
    return all;
  }

  void writeAll(poplar::Engine& engine) {
    engine.writeTensor("lengths", network_.lengths.data(), network_.lengths.data() + network_.lengths.size());
    engine.writeTensor("learning_rate", &kRate, &kRate + 1);
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) {
      const LayerPlan& layer = plan_.layers[l];
      writeWeights(engine, "weights" + std::to_string(l), toTiles(layer, network_.weights[l], layer.inputs, 1));
      if (layer.recurrent) {
        writeWeights(engine, "recurrent" + std::to_string(l), toTiles(layer, network_.recurrent[l], layer.neurons, 1));
      }
      const auto constants = [&](const char* name, const Row& row) {
        const Row blocks = constantsToTiles(layer, row);
        engine.writeTensor(name + std::to_string(l), blocks.data(), blocks.data() + blocks.size());
      };
      constants("bias", network_.bias[l]);
      constants("decay", {network_.decay});
      constants("gain", {network_.gain});
      if (layer.leaky) continue;
      constants("threshold", {network_.threshold});
      constants("second_threshold", {network_.second_threshold});
    }
  }

  bool isHalf() const { return plan_.options.half_weights; }

  void writeWeights(poplar::Engine& engine, const std::string& name, const Row& blocks) {
    if (!isHalf()) return engine.writeTensor(name, blocks.data(), blocks.data() + blocks.size());
    std::vector<std::uint16_t> halves(blocks.size());
    poplar::copyFloatToDeviceHalf(device_.getTarget(), blocks.data(), halves.data(), blocks.size());
    engine.writeTensor(name, halves.data(), halves.data() + halves.size());
  }

  Row readWeights(poplar::Engine& engine, const std::string& name, const poplar::Tensor& tensor) {
    Row blocks(tensor.numElements());
    if (!isHalf()) {
      engine.readTensor(name, blocks.data(), blocks.data() + blocks.size());
      return blocks;
    }
    std::vector<std::uint16_t> halves(blocks.size());
    engine.readTensor(name, halves.data(), halves.data() + halves.size());
    poplar::copyDeviceHalfToFloat(device_.getTarget(), halves.data(), blocks.data(), blocks.size());
    return blocks;
  }

  Parameters readAll(poplar::Engine& engine) {
    Parameters all;
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) {
      const LayerPlan& layer = plan_.layers[l];
      const LayerTensors& own = training_.tensors.network.layers[l];
      const std::string n = std::to_string(l);
      all.weights.push_back(fromTiles(layer, readWeights(engine, "weights" + n, own.weights), layer.inputs, 1));
      all.recurrent.emplace_back();
      if (layer.recurrent) {
        all.recurrent.back() = fromTiles(layer, readWeights(engine, "recurrent" + n, own.recurrent), layer.neurons, 1);
      }
      Row bias(own.bias.numElements());
      engine.readTensor("bias" + n, bias.data(), bias.data() + bias.size());
      all.bias.push_back(fromTiles(layer, bias, 1));
    }
    return all;
  }

  Network network_;
  std::vector<unsigned> labels_;
  poplar::Device device_;
  poplar::Graph graph_;
  NetworkPlan plan_;
  TrainingStep training_;
};

void checkNear(const Row& actual, const Row& expected, float tolerance) {
  CHECK_EQUAL(actual.size(), expected.size());
  for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    CHECK_NEAR(actual[i], expected[i], tolerance * std::max(1.0F, std::abs(expected[i])));
  }
}

void checkNear(const Parameters& actual, const Parameters& expected, float tolerance) {
  for (std::size_t l = 0; l < expected.weights.size(); ++l) {
    checkNear(actual.weights[l], expected.weights[l], tolerance);
    checkNear(actual.recurrent[l], expected.recurrent[l], tolerance);
    checkNear(actual.bias[l], expected.bias[l], tolerance);
  }
}

NetworkOptions smallNetwork() {
  NetworkOptions options;
  options.num_steps = 5;
  options.batch = 3;
  options.num_inputs = 12;
  options.event_capacity = 5;
  options.layers = {{13, 4}, {9, 4}};
  options.outputs = 3;
  return options;
}

std::vector<unsigned> labelsOf(const NetworkOptions& options) {
  std::vector<unsigned> labels;
  for (unsigned b = 0; b < options.batch; ++b) labels.push_back((2 * b + 1) % options.outputs);
  return labels;
}

// 1e-5 of rounding is a thousandth of an update.
void checkTraining(const NetworkOptions& options, Pooling pooling, unsigned tiles, unsigned ipus = 1) {
  const Network network = randomNetwork(options, 5);
  const std::vector<unsigned> labels = labelsOf(options);
  const Trained expected = trainReference(network, labels, pooling, kUpdates);
  CHECK(expected.losses.back() < expected.losses.front());
  const Trained actual = TrainingOnTiles(network, labels, pooling, tiles, ipus).run(kUpdates);
  checkNear(actual.losses, expected.losses, 1e-5F);
  checkNear(actual.parameters, expected.parameters, 1e-5F);
}

void testPoolings() {
  for (const unsigned tiles : {1U, 7U, 64U}) checkTraining(smallNetwork(), Pooling::MeanOverTime, tiles);
  checkTraining(smallNetwork(), Pooling::MeanOverTime, 5, 2);
  checkTraining(smallNetwork(), Pooling::MaxOverTime, 7);
  NetworkOptions options = smallNetwork();
  const NeuronOptions zeroed = {.reset = Reset::Zero};
  options.layers = {{.neurons = 13, .neuron = zeroed}, {.neurons = 9, .neuron = zeroed}};
  checkTraining(options, Pooling::SumOverTime, 7);
}

void testInputsAndRecurrence() {
  NetworkOptions options = smallNetwork();
  options.inputs = Inputs::Events;
  options.layers.front().recurrent = true;
  checkTraining(options, Pooling::MeanOverTime, 7);
  options = smallNetwork();
  options.inputs = Inputs::Dense;
  options.layers = {{8, 4}};
  checkTraining(options, Pooling::MeanOverTime, 7);
}

// Lists made and led in trees of any shape, and columns that are not balanced.
void testTrees() {
  for (const bool recurrent : {false, true}) {
    NetworkOptions options = smallNetwork();
    options.layers.front().recurrent = recurrent;
    for (options.homes = 1; options.homes <= 3; ++options.homes) {
      for (const unsigned group_tiles : {1U, 3U, 12U}) {
        options.group_tiles = group_tiles;
        checkTraining(options, Pooling::MeanOverTime, 64);
      }
    }
    options.equal_columns = true;
    checkTraining(options, Pooling::MeanOverTime, 32);
  }
}

// Weights round to 11 bits in the update; losses, gradients, moments and membranes stay float.
void testHalvesRoundOnce() {
  const Network network = randomNetwork(smallNetwork(), 4);
  const std::vector<unsigned> labels = labelsOf(network.options);
  Network halves = network;
  halves.options.half_weights = true;
  const Trained expected = TrainingOnTiles(network, labels, Pooling::MeanOverTime, 7).run(1);
  const Trained actual = TrainingOnTiles(halves, labels, Pooling::MeanOverTime, 7).run(1);
  CHECK_EQUAL(actual.losses.front(), expected.losses.front());
  for (std::size_t l = 0; l < network.count(); ++l) {
    checkNear(actual.parameters.weights[l], expected.parameters.weights[l], 0x1p-10F);
    CHECK(actual.parameters.weights[l] != network.weights[l]);
  }
}

void testThreadsOfTheHostChangeNoBit() {
  NetworkOptions options = smallNetwork();
  options.layers.front().recurrent = true;
  const Network network = randomNetwork(options, 6);
  TrainingOnTiles training(network, labelsOf(options), Pooling::MeanOverTime, 64);
  const Trained expected = training.run(2, "1");
  const std::string profile = training.profile;
  for (const char* threads : {"2", "5"}) {
    const Trained actual = training.run(2, threads);
    CHECK(training.profile == profile);
    CHECK(actual.losses == expected.losses);
    CHECK(actual.parameters.weights == expected.parameters.weights);
    CHECK(actual.parameters.recurrent == expected.parameters.recurrent);
    CHECK(actual.parameters.bias == expected.parameters.bias);
  }
}

void testErrors() {
  NetworkOptions options = smallNetwork();
  options.outputs = 0;
  poplar::IPUModel model;
  model.tilesPerIPU = 7;
  const poplar::Device device = model.createDevice();
  poplar::Graph graph(device.getTarget());
  const NetworkPlan plan = planNetwork(options, 7, graph.getTarget().getBytesPerTile());
  CHECK_THROWS(addTrainingStep(graph, plan), "training_step: `plan` must keep its record and have a readout, got one");
}

}  // namespace
}  // namespace network_test

int main() {
  using namespace network_test;
  testPoolings();
  testInputsAndRecurrence();
  testTrees();
  testHalvesRoundOnce();
  testThreadsOfTheHostChangeNoBit();
  testErrors();
  return check::failures;
}
