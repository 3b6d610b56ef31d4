#include <algorithm>
#include <builders/host_layout.hpp>
#include <builders/lif_network.hpp>
#include <builders/loop.hpp>
#include <limits>

#include "ops.hpp"

namespace snnjax::harness {
namespace {

using builders::LayerPlan;
using builders::NetworkPlan;
using builders::NetworkTensors;

// The name of a layer's array in the call.
std::string of(const char* name, std::size_t layer) { return name + std::to_string(layer); }

builders::NetworkOptions optionsOf(const Call& call) {
  builders::NetworkOptions options;
  options.num_steps = call.size("num_steps");
  options.batch = call.size("batch");
  options.num_inputs = call.size("num_inputs");
  options.event_capacity = call.size("event_capacity");
  for (unsigned l = 0; l < call.size("num_layers"); ++l) {
    const double capacity = call.number(of("capacity", l));  // negative: none
    options.layers.push_back({.neurons = call.size(of("neurons", l))});
    if (capacity >= 0) options.layers.back().capacity = static_cast<unsigned>(capacity);
  }
  options.outputs = static_cast<unsigned>(call.number("outputs"));
  options.reset = call.choice<builders::Reset>("reset");
  options.detach_reset = call.flag("detach_reset");
  options.surrogate = call.choice<builders::Surrogate>("surrogate");
  options.slope = static_cast<float>(call.number("slope"));
  options.half_weights = call.flag("half");
  options.keeps_record = call.flag("backward") || call.flag("record_spikes");
  options.learns_constants = call.flag("learns_constants");
  return options;
}

std::vector<std::int32_t> widened(const std::vector<std::uint16_t>& ids) { return {ids.begin(), ids.end()}; }

// One lif_network on the model: operands in, programs, results out.
class NetworkRun {
 public:
  explicit NetworkRun(const Call& call)
      : call_(call),
        model_(call),
        plan_(planOf(call, model_.graph().getTarget())),
        tensors_(builders::addNetworkTensors(model_.graph(), plan_)) {}

  Report run() {
    std::vector<poplar::program::Program> programs = {builders::addForward(model_.graph(), plan_, tensors_)};
    const bool backward = call_.flag("backward");
    writeInputs();
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) writeLayer(l);
    readResults();
    if (backward) {
      cotangents_ = builders::addNetworkCotangents(model_.graph(), plan_);
      programs.push_back(backwardProgram());
      for (std::size_t l = 0; l < plan_.layers.size(); ++l) transferCotangents(l);
    }
    Report report = model_.run(programs);
    takeResults();
    if (backward) {
      for (std::size_t l = 0; l < plan_.layers.size(); ++l) takeCotangents(l);
    }
    return report;
  }

 private:
  static NetworkPlan planOf(const Call& call, const poplar::Target& target) {
    return builders::planNetwork(optionsOf(call), target.getNumTiles(), target.getBytesPerTile());
  }

  std::size_t steps() const { return plan_.options.num_steps; }
  std::size_t batch() const { return plan_.options.batch; }
  std::size_t state(const LayerPlan& layer) const { return batch() * layer.neurons; }

  void writeInputs() {
    const builders::ListPlan& list = plan_.lists.front();
    const auto ids = call_.integers("ids", steps() * batch() * list.capacity);
    model_.write(tensors_.lists.front().history, widened(builders::listsToHomes(plan_, 0, ids)));
    model_.write(tensors_.lengths, call_.integers("lengths", batch()));
  }

  void writeLayer(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    const builders::LayerTensors& tensors = tensors_.layers[l];
    const auto constants = [&](const poplar::Tensor& tensor, const char* name, float fill) {
      model_.write(tensor, builders::constantsToTiles(layer, call_.floats(of(name, l), layer.neurons), fill));
    };
    const auto weights = call_.floats(of("weights", l), std::size_t{layer.inputs} * layer.neurons);
    model_.write(tensors.weights, builders::toTiles(layer, weights, layer.inputs, 1));
    model_.write(builders::membraneRow(plan_, l, tensors, 0),
                 builders::toTiles(layer, call_.floats(of("v", l), state(layer)), batch()));
    constants(tensors.bias, "bias", 0);
    constants(tensors.decay, "decay", 0);
    constants(tensors.gain, "gain", 0);
    if (layer.leaky) return;
    const float never = std::numeric_limits<float>::infinity();  // do columns to spare fire
    constants(tensors.threshold, "threshold", never);
    constants(tensors.second_threshold, "second_threshold", never);
  }

  void readResults() {
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) {
      const bool is_last = l + 1 == plan_.layers.size();
      const unsigned row = plan_.membraneRows(l) - 1;
      model_.read(is_last ? tensors_.layers[l].membranes
                          : builders::membraneRow(plan_, l, tensors_.layers[l], row));
      if (!plan_.layers[l].leaky) model_.read(tensors_.layers[l].counts);
    }
    for (std::size_t l = 1; l < plan_.lists.size(); ++l) {
      model_.read(tensors_.lists[l].dropped);
      if (plan_.options.keeps_record) model_.read(tensors_.lists[l].history);
    }
  }

  void takeResults() {
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) {
      const LayerPlan& layer = plan_.layers[l];
      const bool is_last = l + 1 == plan_.layers.size();
      const std::size_t rows = is_last ? (steps() + 1) * batch() : batch();
      take(is_last ? "membranes" : of("last", l), layer, rows);
      if (!layer.leaky) take(of("counts", l), layer, batch());
    }
    for (std::size_t l = 1; l < plan_.lists.size(); ++l) {
      std::ranges::copy(model_.nextIntegers(), call_.integers(of("dropped", l - 1), batch()).begin());
      if (plan_.options.keeps_record) takeLists(l);
    }
  }

  void take(const std::string& name, const LayerPlan& layer, std::size_t rows, std::size_t extra_rows = 0) {
    const std::vector<float> array = builders::fromTiles(layer, model_.nextFloats(), rows, extra_rows);
    std::ranges::copy(array, call_.floats(name, rows * layer.neurons).begin());
  }

  void takeLists(std::size_t l) {
    const std::vector<std::int32_t> history = model_.nextIntegers();
    const auto lists = builders::listsFromHomes(plan_, l, std::vector<std::uint16_t>(history.begin(), history.end()));
    const std::size_t records = steps() * batch();
    std::ranges::copy(lists.ids, call_.integers(of("ids", l - 1), records * plan_.lists[l].capacity).begin());
    std::ranges::copy(lists.num_kept, call_.integers(of("num_kept", l - 1), records).begin());
    std::ranges::copy(lists.num_spikes, call_.integers(of("num_spikes", l - 1), records).begin());
    std::ranges::copy(lists.num_listed, call_.integers(of("num_listed", l - 1), records).begin());
  }

  // Gradients are added to what is there.
  poplar::program::Sequence backwardProgram() {
    poplar::program::Sequence program;
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) {
      for (const Gradient& gradient : gradientsOf(l)) {
        const bool is_written = plan_.layers[l].leaky && gradient.name == of("g_v", l);
        if (!is_written) program.add(builders::zeros(model_.graph(), gradient.tensor));
      }
      if (!plan_.layers[l].leaky) program.add(builders::zeros(model_.graph(), cotangents_.layers[l].g_v));
    }
    program.add(builders::addBackward(model_.graph(), plan_, tensors_, cotangents_));
    return program;
  }

  struct Gradient {
    std::string name;
    poplar::Tensor tensor;  // [tiles, rows * columns], and a row of scratch behind those of the weights
  };

  std::vector<Gradient> gradientsOf(std::size_t l) const {
    const builders::LayerCotangents& own = cotangents_.layers[l];
    std::vector<Gradient> gradients = {{of("g_weights", l), own.g_weights}, {of("g_bias", l), own.g_bias}};
    if (plan_.layers[l].leaky) {
      gradients.push_back({of("g_v", l), own.g_v});
    } else {
      gradients.push_back({of("g_v", l), own.g_first});
      if (plan_.options.learns_constants) {
        gradients.insert(gradients.end(), {{of("g_decay", l), own.g_decay},
                                           {of("g_threshold", l), own.g_threshold},
                                           {of("g_gain", l), own.g_gain}});
      }
    }
    return gradients;
  }

  void transferCotangents(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    const builders::LayerCotangents& own = cotangents_.layers[l];
    const auto write = [&](const poplar::Tensor& tensor, const std::string& name, std::size_t rows) {
      model_.write(tensor, builders::toTiles(layer, call_.floats(name, rows * layer.neurons), rows));
    };
    write(layer.leaky ? own.g_v : own.g_last, of("g_last", l), batch());
    if (!layer.leaky) write(own.g_counts, of("g_counts", l), batch());
    if (l + 1 == plan_.layers.size()) write(own.g_output, "g_output", steps() * batch());
    for (const Gradient& gradient : gradientsOf(l)) model_.read(gradient.tensor);
  }

  void takeCotangents(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    for (const Gradient& gradient : gradientsOf(l)) {
      const bool is_weights = gradient.name == of("g_weights", l);
      take(gradient.name, layer, is_weights ? layer.inputs : batch(), is_weights ? 1 : 0);
    }
  }

  const Call& call_;
  Model model_;
  NetworkPlan plan_;
  NetworkTensors tensors_;
  builders::NetworkCotangents cotangents_;
};

}  // namespace

Report runLifNetwork(const Call& call) { return NetworkRun(call).run(); }

}  // namespace snnjax::harness
