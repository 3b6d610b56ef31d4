#include "executor/targets/network_on_tiles.hpp"

#include <builders/vertices.hpp>
#include <limits>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <poputil/VertexTemplates.hpp>

#include "executor/targets/operands.hpp"

namespace snnjax::executor::targets {
namespace {

using builders::LayerPlan;
using builders::LayerTensors;
using builders::ListPlan;
using poplar::Tensor;

class Bringer {
 public:
  Bringer(Lowering& lowering, const NetworkOperands& operands, NetworkOnTiles& network)
      : lowering_(lowering), operands_(operands), network_(network), plan_(network.plan) {}

  void run() {
    if (operands_.has_lists) {
      bringEvents();
    } else {
      const ListPlan& list = plan_.lists.front();
      const Tensor& history = network_.tensors.lists.front().values_history;
      bring(lowering_, array(operands_.inputs), inTime(plan_, list, history, list.capacity));
    }
    bringLengths();
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) bringLayer(l);
  }

 private:
  // Without the groups axis.
  Tensor array(ValueId value) { return lowering_.get(value)[0]; }

  Tensor constant(const poplar::Type& type, float value) {
    const Tensor tensor = lowering_.graph().addConstant(type, {1}, value, lowering_.debug("constant"));
    lowering_.graph().setTileMapping(tensor, plan_.layers.front().tiles.first);
    return tensor;
  }

  void bringLengths() {
    const Tensor& to = network_.tensors.lengths;
    const auto steps = static_cast<int>(plan_.options.num_steps);
    if (!operands_.lengths) return bring(lowering_, constant(to.elementType(), static_cast<float>(steps)), to);
    namespace e = popops::expr;
    const Tensor within = popops::map(lowering_.graph(), e::Clamp(e::_1, e::Const(0), e::Const(steps)),
                                      {array(*operands_.lengths)}, lowering_.program(), lowering_.debug("lengths"));
    bring(lowering_, within, to);
  }

  void bringLayer(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    const LayerTensors& tensors = network_.tensors.layers[l];
    const LayerOperands& from = operands_.layers[l];
    rows(layer, array(from.weights), tensors.weights, layer.inputs, 1);
    if (from.recurrent) rows(layer, array(*from.recurrent), tensors.recurrent, layer.neurons, 1);
    rows(layer, from.bias ? array(*from.bias) : constant(poplar::FLOAT, 0), tensors.bias, 1);
    rows(layer, array(from.decay), tensors.decay, 1);
    rows(layer, array(from.gain), tensors.gain, 1);
    const Tensor first = builders::membraneRow(plan_, l, tensors, 0);
    rows(layer, array(from.first_v), first, plan_.options.batch);
    if (layer.leaky) return;
    rows(layer, array(*from.threshold), tensors.threshold, 1);
    // Without a capacity every neuron gets its gradient.
    const bool lists_all = !operands_.fields[l].capacity;
    const Tensor second =
        lists_all ? constant(poplar::FLOAT, -std::numeric_limits<float>::infinity()) : array(*from.second_threshold);
    rows(layer, second, tensors.second_threshold, 1);
    if (tensors.first_spikes.valid()) bring(lowering_, array(*from.first_spikes), tensors.first_spikes);
  }

  void rows(const LayerPlan& layer, const Tensor& from, const Tensor& blocks, std::size_t rows, std::size_t extra = 0) {
    zeroBeside(lowering_.graph(), blocks, layer.tiles, rows, layer.neurons, extra);
    bring(lowering_, from, asRows(blocks, layer.tiles, rows, layer.neurons, extra));
  }

  // In any order, with ids out of range: sorted at their homes.
  void bringEvents() {
    const ListPlan& list = plan_.lists.front();
    const builders::ListTensors& tensors = network_.tensors.lists.front();
    const Tensor ids = array(*operands_.ids);
    const auto add = [&](const poplar::Type& type, const char* name) {
      return builders::addHistory(lowering_.graph(), type, plan_, list, list.capacity, name);
    };
    const Tensor own_ids = add(ids.elementType(), "events/ids"), own_values = add(poplar::FLOAT, "events/values");
    const Tensor sorted = list.valued ? tensors.values_history : add(poplar::FLOAT, "events/sorted");
    network_.event_slots = add(poplar::UNSIGNED_INT, "events/slots");
    bring(lowering_, ids, inTime(plan_, list, own_ids, list.capacity));
    bring(lowering_, array(operands_.inputs), inTime(plan_, list, own_values, list.capacity));
    const poplar::ComputeSet set = lowering_.graph().addComputeSet(lowering_.debug("events"));
    const std::string vertex = poputil::templateVertex("snnjax::SortEvents", ids.elementType());
    for (const builders::Home& home : list.homes) {
      const auto own = [&](const Tensor& history, std::size_t width) {
        return builders::historyOf(plan_, width, history, home);
      };
      builders::addVertex(lowering_.graph(), set, vertex, home.tile,
                          {{"ids", own(own_ids, list.capacity)},
                           {"values", own(own_values, list.capacity)},
                           {"lists", own(tensors.history, list.stride)},
                           {"sorted", own(sorted, list.capacity)},
                           {"slots", own(network_.event_slots, list.capacity)}},
                          {{"rows", plan_.options.num_steps * home.samples},
                           {"capacity", list.capacity},
                           {"stride", list.stride},
                           {"num_inputs", list.num_neurons}});
    }
    lowering_.program().add(poplar::program::Execute(set));
  }

  Lowering& lowering_;
  const NetworkOperands& operands_;
  NetworkOnTiles& network_;
  const builders::NetworkPlan& plan_;
};

}  // namespace

Tensor inTime(const builders::NetworkPlan& plan, const ListPlan& list, const Tensor& history, std::size_t width) {
  std::vector<Tensor> samples;
  for (const builders::Home& home : list.homes) {
    const Tensor own = builders::historyOf(plan, width, history, home);
    samples.push_back(own.reshape({plan.options.num_steps, home.samples, width}));
  }
  return poplar::concat(samples, 1);
}

NetworkOnTiles bringNetwork(Lowering& lowering, const NetworkOperands& operands,
                            const builders::NetworkOptions& options) {
  const poplar::Target& target = lowering.graph().getTarget();
  NetworkOnTiles network;
  network.plan = builders::planNetwork(options, target.getNumTiles(), target.getBytesPerTile());
  network.tensors = builders::addNetworkTensors(lowering.graph(), network.plan);
  Bringer(lowering, operands, network).run();
  return network;
}

}  // namespace snnjax::executor::targets
