#include <algorithm>
#include <builders/host_layout.hpp>
#include <builders/lif_network.hpp>
#include <builders/loop.hpp>

#include "network_arrays.hpp"
#include "ops.hpp"

namespace snnjax::harness {
namespace {

using builders::LayerPlan;
using builders::NetworkPlan;
using builders::NetworkTensors;

builders::NetworkOptions optionsOf(const Call& call) {
  builders::NetworkOptions options = networkOptions(call);
  options.keeps_record = call.flag("backward") || call.flag("record_spikes");
  options.learns_constants = call.flag("learns_constants");
  options.inputs_gradient = call.flag("inputs_gradient");
  options.first_spikes = call.flag("first_spikes");
  return options;
}

std::vector<std::int32_t> widened(const std::vector<std::uint16_t>& ids) { return {ids.begin(), ids.end()}; }

// One lif_network on the model: operands in, programs, results out.
class NetworkRun {
 public:
  explicit NetworkRun(const Call& call)
      : call_(call),
        model_(call),
        plan_(planOf(optionsOf(call), model_)),
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
  std::size_t steps() const { return plan_.options.num_steps; }
  std::size_t batch() const { return plan_.options.batch; }
  std::size_t state(const LayerPlan& layer) const { return batch() * layer.neurons; }

  void writeInputs() {
    const builders::ListTensors& inputs = tensors_.lists.front();
    if (inputs.history.valid()) model_.write(inputs.history, widened(eventsOf(call_, plan_)));
    if (inputs.values_history.valid()) model_.write(inputs.values_history, valuesOf(call_, plan_));
    model_.write(tensors_.lengths, call_.integers("lengths", batch()));
  }

  void writeLayer(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    writeParameters(model_, call_, plan_, l, tensors_.layers[l]);
    model_.write(builders::membraneRow(plan_, l, tensors_.layers[l], 0),
                 builders::toTiles(layer, call_.floats(numbered("v", l), state(layer)), batch()));
    const poplar::Tensor& spikes = tensors_.layers[l].first_spikes;  // in the order of the user
    if (spikes.valid()) model_.write(spikes, call_.floats(numbered("spikes", l), state(layer)));
  }

  void readResults() {
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) {
      const bool is_last = l + 1 == plan_.layers.size();
      const unsigned row = plan_.membraneRows(l) - 1;
      model_.read(is_last ? tensors_.layers[l].membranes : builders::membraneRow(plan_, l, tensors_.layers[l], row));
      if (!plan_.layers[l].leaky) model_.read(tensors_.layers[l].counts);
      if (plan_.layers[l].recurrent) model_.read(tensors_.layers[l].last_spikes);
    }
    for (std::size_t l = 1; l < plan_.lists.size(); ++l) {
      model_.read(tensors_.lists[l].dropped);
      if (tensors_.lists[l].history.valid()) model_.read(tensors_.lists[l].history);
    }
  }

  void takeResults() {
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) {
      const LayerPlan& layer = plan_.layers[l];
      const bool is_last = l + 1 == plan_.layers.size();
      const std::size_t rows = is_last ? (steps() + 1) * batch() : batch();
      takeBlocks(model_, call_, is_last ? "membranes" : numbered("last", l), layer, rows);
      if (!layer.leaky) takeBlocks(model_, call_, numbered("counts", l), layer, batch());
      if (layer.recurrent) takeFloats(numbered("last_spikes", l), state(layer));
    }
    for (std::size_t l = 1; l < plan_.lists.size(); ++l) {
      std::ranges::copy(model_.nextIntegers(), call_.integers(numbered("dropped", l - 1), batch()).begin());
      if (!tensors_.lists[l].history.valid()) continue;
      const std::vector<std::int32_t> history = model_.nextIntegers();
      if (plan_.options.keeps_record) takeLists(l, {history.begin(), history.end()});
    }
  }

  // An array that lies in the user's order.
  void takeFloats(const std::string& name, std::size_t size) {
    std::ranges::copy(model_.nextFloats(), call_.floats(name, size).begin());
  }

  void takeLists(std::size_t l, const std::vector<std::uint16_t>& history) {
    const auto lists = builders::listsFromHomes(plan_, l, history);
    const std::size_t records = steps() * batch();
    std::ranges::copy(lists.ids, call_.integers(numbered("ids", l - 1), records * plan_.lists[l].capacity).begin());
    std::ranges::copy(lists.num_kept, call_.integers(numbered("num_kept", l - 1), records).begin());
    std::ranges::copy(lists.num_spikes, call_.integers(numbered("num_spikes", l - 1), records).begin());
    std::ranges::copy(lists.num_listed, call_.integers(numbered("num_listed", l - 1), records).begin());
  }

  // Gradients are added to what is there.
  poplar::program::Sequence backwardProgram() {
    std::vector<poplar::Tensor> zero;
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) {
      const bool leaky = plan_.layers[l].leaky;
      for (const Gradient& gradient : gradientsOf(l)) {
        if (!leaky || gradient.name != numbered("g_v", l)) zero.push_back(gradient.tensor);  // that one is written
      }
      if (!leaky) zero.push_back(cotangents_.layers[l].g_v);
    }
    return poplar::program::Sequence({builders::zeros(model_.graph(), zero, "backward/zero_gradients"),
                                      builders::addBackward(model_.graph(), plan_, tensors_, cotangents_)});
  }

  struct Gradient {
    std::string name;
    poplar::Tensor tensor;  // [tiles, rows * columns], and a row of scratch behind those of weights
    bool is_weights = false;
  };

  // In blocks on the neurons' tiles.
  std::vector<Gradient> gradientsOf(std::size_t l) const {
    const builders::LayerCotangents& own = cotangents_.layers[l];
    const LayerPlan& layer = plan_.layers[l];
    std::vector<Gradient> gradients = {{numbered("g_weights", l), own.g_weights, true},
                                       {numbered("g_bias", l), own.g_bias},
                                       {numbered("g_v", l), layer.leaky ? own.g_v : own.g_first}};
    if (layer.recurrent) gradients.push_back({numbered("g_recurrent", l), own.g_recurrent, true});
    if (!plan_.options.learns_constants) return gradients;
    gradients.insert(gradients.end(), {{numbered("g_decay", l), own.g_decay}, {numbered("g_gain", l), own.g_gain}});
    if (!layer.leaky) gradients.push_back({numbered("g_threshold", l), own.g_threshold});
    return gradients;
  }

  void transferCotangents(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    const builders::LayerCotangents& own = cotangents_.layers[l];
    const auto write = [&](const poplar::Tensor& tensor, const std::string& name, std::size_t rows) {
      model_.write(tensor, builders::toTiles(layer, call_.floats(name, rows * layer.neurons), rows));
    };
    write(layer.leaky ? own.g_v : own.g_last, numbered("g_last", l), batch());
    if (!layer.leaky) write(own.g_counts, numbered("g_counts", l), batch());
    if (l + 1 == plan_.layers.size()) write(own.g_output, "g_output", steps() * batch());
    if (layer.recurrent) model_.write(own.g_last_spikes, call_.floats(numbered("g_last_spikes", l), state(layer)));
    for (const Gradient& gradient : gradientsOf(l)) model_.read(gradient.tensor);
    if (own.g_first_spikes.valid()) model_.read(own.g_first_spikes);
    if (l == 0 && cotangents_.g_inputs.valid()) model_.read(cotangents_.g_inputs);
  }

  void takeCotangents(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    for (const Gradient& gradient : gradientsOf(l)) {
      const bool is_recurrent = gradient.name == numbered("g_recurrent", l);
      const std::size_t rows = is_recurrent ? layer.neurons : gradient.is_weights ? layer.inputs : batch();
      takeBlocks(model_, call_, gradient.name, layer, rows, gradient.is_weights ? 1 : 0);
    }
    if (cotangents_.layers[l].g_first_spikes.valid()) takeFloats(numbered("g_spikes", l), state(layer));
    if (l > 0 || !cotangents_.g_inputs.valid()) return;
    const std::vector<float> values = builders::valuesFromHomes(plan_, 0, eventIds(call_, plan_), model_.nextFloats());
    std::ranges::copy(values, call_.floats("g_values", values.size()).begin());
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
