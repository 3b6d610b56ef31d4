// Every list of every step is full of spikes: of each hidden layer as many neurons as its lists have slots, evenly
// spread, get weights of 1, so that any input makes them fire at every step, and the others weights of -1. The inputs
// are 32 distinct ids.
#include "calibration/training_steps.hpp"

#include <chrono>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <string>

#include "builders/host_layout.hpp"
#include "builders/training_step.hpp"
#include "error.hpp"

namespace ipu_model::calibration {
namespace {

using snnjax::builders::LayerPlan;
using snnjax::builders::NetworkOptions;
using snnjax::builders::NetworkPlan;
using snnjax::builders::planNetwork;
using snnjax::builders::TrainingStep;

constexpr const char* kChip = "mk2";  // the others differ in their clock only
constexpr float kDecay = 0.95F, kGain = 0.5F, kThreshold = 1, kSecondThreshold = 0.9F;  // ipu.md 1.2

NetworkOptions optionsOf(const Cell& cell, unsigned steps) {
  NetworkOptions options;
  options.num_steps = steps;
  options.batch = kBatch;
  options.num_inputs = cell.neurons.front();
  options.event_capacity = cell.capacities.front();
  for (std::size_t i = 1; i + 1 < cell.neurons.size(); ++i)
    options.layers.push_back(
        {.neurons = cell.neurons[i], .capacity = cell.capacities[i], .neuron = {.reset = snnjax::Reset::Zero}});
  options.outputs = cell.neurons.back();
  return options;
}

// [inputs, neurons], row-major.
std::vector<float> weightsOf(const LayerPlan& layer, unsigned firing) {
  std::vector<float> row(layer.neurons, -1.0F);
  for (unsigned k = 0; k < firing; ++k) row[std::size_t{k} * layer.neurons / firing] = 1.0F;
  std::vector<float> weights;
  weights.reserve(std::size_t{layer.inputs} * layer.neurons);
  for (unsigned i = 0; i < layer.inputs; ++i) weights.insert(weights.end(), row.begin(), row.end());
  return weights;
}

std::vector<std::int32_t> eventsOf(const NetworkOptions& options) {
  std::vector<std::int32_t> ids;
  const unsigned apart = options.num_inputs / options.event_capacity;
  for (unsigned row = 0; row < options.num_steps * options.batch; ++row) {
    for (unsigned k = 0; k < options.event_capacity; ++k)
      ids.push_back(static_cast<std::int32_t>(k * apart + row % apart));
  }
  return ids;
}

class Training {
 public:
  Training(const Cell& cell, unsigned steps, const std::string& codelets)
      : device_(poplar::IPUModel(kChip).createDevice()), graph_(device_.getTarget()), cell_(cell) {
    graph_.addCodelets(codelets);
    const poplar::Target& target = graph_.getTarget();
    plan_ = planNetwork(optionsOf(cell, steps), target.getNumTiles(), target.getBytesPerTile());
    step_ = snnjax::builders::addTrainingStep(graph_, plan_);
    events_ = snnjax::builders::listsToHomes(plan_, 0, eventsOf(plan_.options));
  }

  StepRun run() {
    const snnjax::builders::NetworkTensors& tensors = step_.tensors.network;
    const auto open = [&](const std::string& name, const poplar::Tensor& tensor) {
      if (tensor.valid()) graph_.createHostWrite(name, tensor);
    };
    open("lengths", tensors.lengths);
    open("learning_rate", step_.tensors.learning_rate);
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) {
      for (const auto& [name, tensor] : parameters(l)) open(name + std::to_string(l), tensor);
    }
    poplar::Engine engine(graph_, {step_.prepare, step_.step});
    engine.load(device_);
    write(engine);
    engine.run(0);
    engine.resetExecutionProfile();
    const Clock::time_point ready = Clock::now();
    engine.run(1);
    const Clock::time_point done = Clock::now();
    StepRun step{profileOf(engine), seconds(ready - begin_), seconds(done - ready)};
    check(step.profile);
    return step;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

  struct Named {
    const char* name;
    poplar::Tensor tensor;
  };
  [[nodiscard]] std::vector<Named> parameters(std::size_t l) const {
    const snnjax::builders::LayerTensors& own = step_.tensors.network.layers[l];
    return {{"weights", own.weights}, {"bias", own.bias},           {"decay", own.decay},
            {"gain", own.gain},       {"threshold", own.threshold}, {"second_threshold", own.second_threshold}};
  }

  void write(poplar::Engine& engine) {
    const auto put = [&](const std::string& name, const auto& values) {
      engine.writeTensor(name, values.data(), values.data() + values.size());
    };
    put("lengths", std::vector<std::uint32_t>(plan_.options.batch, plan_.options.num_steps));
    put("learning_rate", std::vector<float>{1e-3F});
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) {
      const LayerPlan& layer = plan_.layers[l];
      const std::string n = std::to_string(l);
      const unsigned firing = layer.leaky ? layer.neurons : cell_.capacities[l + 1];
      put("weights" + n, snnjax::builders::toTiles(layer, weightsOf(layer, firing), layer.inputs, 1));
      const auto constant = [&](const char* name, float value) {
        put(name + n, snnjax::builders::constantsToTiles(layer, std::vector{value}));
      };
      constant("bias", 0);
      constant("decay", kDecay);
      constant("gain", kGain);
      if (layer.leaky) continue;
      constant("threshold", kThreshold);
      constant("second_threshold", kSecondThreshold);
    }
    loss_.resize(plan_.options.batch);
    labels_.resize(plan_.options.batch);
    engine.connectStream(snnjax::builders::kInputStream, events_.data());
    engine.connectStream(snnjax::builders::kLabelStream, labels_.data());
    engine.connectStream(snnjax::builders::kLossStream, loss_.data());
  }

  static void check(const Profile& profile) {
    if (profile.unknown_codelets.empty()) return;
    throw snnjax::Error(snnjax::ErrorCode::kInternal, "training_steps: `codelets` must have costs, got " +
                                                          profile.unknown_codelets.front() +
                                                          " without. Write its cost beside it.");
  }

  Clock::time_point begin_ = Clock::now();
  poplar::Device device_;
  poplar::Graph graph_;
  Cell cell_;
  NetworkPlan plan_;
  TrainingStep step_;
  std::vector<std::uint16_t> events_;
  std::vector<std::uint32_t> labels_;
  std::vector<float> loss_;
};

}  // namespace

double StepRun::milliseconds(const Chip& chip) const {
  const PhaseCycles& cycles = profile.cycles;
  const double host = seconds(chipNamed(kChip), cycles.host);
  return 1e3 * (seconds(chip, cycles.total() - cycles.host) + host);
}

std::vector<snnjax::builders::TileRange> tilesOf(const Cell& cell) {
  const Chip& chip = chipNamed(kChip);
  std::vector<snnjax::builders::TileRange> tiles;
  for (const LayerPlan& layer : planNetwork(optionsOf(cell, kSteps), chip.tiles, chip.tile_memory).layers) {
    tiles.push_back(layer.tiles);
  }
  return tiles;
}

StepRun runTrainingStep(const Cell& cell, unsigned steps, const std::string& codelets) {
  return Training(cell, steps, codelets).run();
}

std::vector<StepRun> runTrainingSteps(const std::string& codelets) {
  std::vector<StepRun> runs;
  for (const Cell& cell : cells()) runs.push_back(runTrainingStep(cell, kSteps, codelets));
  return runs;
}

Table trainingSteps(const Chip& chip, std::span<const StepRun> runs) {
  Table table{
      "**Our training step** on " + std::string(chip.name) + ", all lists full; measured: graphcore_snn", "ms", 2, {}};
  for (std::size_t i = 0; i < runs.size(); ++i) table.rows.push_back(cells()[i].row(runs[i].milliseconds(chip)));
  return table;
}

}  // namespace ipu_model::calibration
