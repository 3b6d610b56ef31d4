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
    model_.write(tensors_.lists.front().history, widened(eventsOf(call_, plan_)));
    model_.write(tensors_.lengths, call_.integers("lengths", batch()));
  }

  void writeLayer(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    writeParameters(model_, call_, plan_, l, tensors_.layers[l]);
    model_.write(builders::membraneRow(plan_, l, tensors_.layers[l], 0),
                 builders::toTiles(layer, call_.floats(numbered("v", l), state(layer)), batch()));
  }

  void readResults() {
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) {
      const bool is_last = l + 1 == plan_.layers.size();
      const unsigned row = plan_.membraneRows(l) - 1;
      model_.read(is_last ? tensors_.layers[l].membranes : builders::membraneRow(plan_, l, tensors_.layers[l], row));
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
      takeBlocks(model_, call_, is_last ? "membranes" : numbered("last", l), layer, rows);
      if (!layer.leaky) takeBlocks(model_, call_, numbered("counts", l), layer, batch());
    }
    for (std::size_t l = 1; l < plan_.lists.size(); ++l) {
      std::ranges::copy(model_.nextIntegers(), call_.integers(numbered("dropped", l - 1), batch()).begin());
      if (plan_.options.keeps_record) takeLists(l);
    }
  }

  void takeLists(std::size_t l) {
    const std::vector<std::int32_t> history = model_.nextIntegers();
    const auto lists = builders::listsFromHomes(plan_, l, std::vector<std::uint16_t>(history.begin(), history.end()));
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
    poplar::Tensor tensor;  // [tiles, rows * columns], and a row of scratch behind those of the weights
  };

  std::vector<Gradient> gradientsOf(std::size_t l) const {
    const builders::LayerCotangents& own = cotangents_.layers[l];
    std::vector<Gradient> gradients = {{numbered("g_weights", l), own.g_weights}, {numbered("g_bias", l), own.g_bias}};
    if (plan_.layers[l].leaky) {
      gradients.push_back({numbered("g_v", l), own.g_v});
    } else {
      gradients.push_back({numbered("g_v", l), own.g_first});
      if (plan_.options.learns_constants) {
        gradients.insert(gradients.end(), {{numbered("g_decay", l), own.g_decay},
                                           {numbered("g_threshold", l), own.g_threshold},
                                           {numbered("g_gain", l), own.g_gain}});
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
    write(layer.leaky ? own.g_v : own.g_last, numbered("g_last", l), batch());
    if (!layer.leaky) write(own.g_counts, numbered("g_counts", l), batch());
    if (l + 1 == plan_.layers.size()) write(own.g_output, "g_output", steps() * batch());
    for (const Gradient& gradient : gradientsOf(l)) model_.read(gradient.tensor);
  }

  void takeCotangents(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    for (const Gradient& gradient : gradientsOf(l)) {
      const bool is_weights = gradient.name == numbered("g_weights", l);
      takeBlocks(model_, call_, gradient.name, layer, is_weights ? layer.inputs : batch(), is_weights ? 1 : 0);
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
