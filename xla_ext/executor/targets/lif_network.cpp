// The target `snnjax_lif_network`: the forward pass.
#include <popops/ElementWise.hpp>

#include "executor/targets/network_check.hpp"

namespace snnjax::executor::targets {
namespace {

using builders::LayerPlan;
using builders::ListPlan;

class Results {
 public:
  Results(Lowering& lowering, const ForwardCall& call, const NetworkOnTiles& network)
      : lowering_(lowering),
        results_(call.to.results),
        network_(network),
        plan_(network.plan),
        num_lif_(call.layers.size()) {}

  void run() {
    const std::size_t last = plan_.layers.size() - 1;
    if (results_.output) give(results_.output, membranes(last));
    for (std::size_t l = 0; l < num_lif_ && plan_.options.counts; ++l) {
      give(results_.counts[l], inBatch(l, network_.tensors.layers[l].counts));
    }
    for (std::size_t l = 0; l < num_lif_; ++l) giveDropped(l);
    for (std::size_t l = 0; l < num_lif_; ++l) giveSpikes(l);
    for (std::size_t l = 0; l < num_lif_; ++l) {
      const builders::LayerTensors& tensors = network_.tensors.layers[l];
      const lif_network::LayerState<Value>& to = results_.last[l];
      give(to.v, lastMembranes(l));
      if (to.w) give(to.w, inBatch(l, builders::rowOf(plan_, l, tensors.second_states, plan_.secondRows(l) - 1)));
      if (to.spikes) give(to.spikes, tensors.last_spikes);
    }
    if (results_.last_readout) give(results_.last_readout, lastMembranes(last));
  }

 private:
  // What nobody reads is not copied.
  void give(const Value& result, const Tensor& tensor) {
    if (lowering_.isRead(result.value())) yield(lowering_, result.value(), tensor);
  }

  Tensor lastMembranes(std::size_t l) const {
    return inBatch(l, builders::rowOf(plan_, l, network_.tensors.layers[l].membranes, plan_.membraneRows(l) - 1));
  }

  // Blocks [tiles, batch * columns] as [batch, neurons].
  Tensor inBatch(std::size_t l, const Tensor& blocks) const {
    return asRows(blocks, plan_.layers[l].tiles, plan_.options.batch, plan_.layers[l].neurons);
  }

  Tensor membranes(std::size_t l) const { return afterSteps(plan_, l, network_.tensors.layers[l].membranes); }

  // Derived from the membranes, none past the end of a sequence: bool [num_steps, batch, neurons].
  Tensor trueSpikes(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    std::vector<unsigned> numbers(plan_.options.num_steps);
    for (unsigned t = 0; t < numbers.size(); ++t) numbers[t] = t;
    const Tensor steps = lowering_.graph().addConstant(poplar::UNSIGNED_INT, {numbers.size(), 1, 1},
                                                       poplar::ArrayRef<unsigned>(numbers), lowering_.debug("steps"));
    lowering_.graph().setTileMapping(steps, layer.tiles.first);
    const builders::LayerTensors& tensors = network_.tensors.layers[l];
    const auto constant = [&](const Tensor& blocks) {
      return asRows(blocks, layer.tiles, 1, layer.neurons).expand({0});
    };
    const Tensor ends = network_.tensors.lengths.reshape({1, plan_.options.batch, 1});
    namespace e = popops::expr;
    std::vector<Tensor> terms = {membranes(l), constant(tensors.threshold), steps, ends};
    const auto within = e::Lt(e::_3, e::_4);
    if (!layer.neuron.raises_threshold) return map(e::And(e::Gt(e::_1, e::_2), within), terms);
    terms.push_back(constant(builders::secondConstant(layer, tensors, ThresholdCoupling, 0)));
    terms.push_back(afterSteps(plan_, l, tensors.second_states));
    return map(e::And(e::Gt(e::_1, e::Add(e::_2, e::Mul(e::_5, e::_6))), within), terms);
  }

  Tensor map(const popops::expr::Expr& expression, const std::vector<Tensor>& terms) {
    return popops::map(lowering_.graph(), expression, terms, lowering_.program(), lowering_.debug("spikes"));
  }

  void giveDropped(std::size_t l) {
    const Value& to = results_.dropped[l];
    if (plan_.firesLists(l)) return give(to, network_.tensors.lists[l + 1].dropped);
    const Tensor none = lowering_.graph().addConstant(poplar::INT, {1}, 0, lowering_.debug("dropped"));
    lowering_.graph().setTileMapping(none, plan_.layers[l].tiles.first);
    give(to, none);
  }

  void giveSpikes(std::size_t l) {
    const schema::Spikes<Value>& to = results_.spikes[l];
    if (to.array && lowering_.isRead(*to.array)) give(to.array, trueSpikes(l));
    if (!to.ids) return;
    const ListPlan& list = plan_.lists[l + 1];
    const Tensor records = builders::inTime(plan_, list, network_.tensors.lists[l + 1].history, list.stride);
    const auto entries = [&](std::size_t first, std::size_t last) { return records.slice(first, last, 2); };
    const std::size_t slots = lowering_.type(*to.ids).shape.back();  // maybe more than neurons
    give(to.ids, padded(entries(kListHeader, kListHeader + list.capacity), slots, list.num_neurons));
    give(to.values, padded(values(list, network_.tensors.lists[l + 1].history), slots, 0));
    give(to.num_spikes, entries(kTrueSpikes, kTrueSpikes + 1));
    give(to.num_listed, entries(kListed, kListed + 1));
  }

  // With `slots` along the last dimension.
  Tensor padded(const Tensor& tensor, std::size_t slots, unsigned pad) {
    if (tensor.dim(2) == slots) return tensor;
    const Tensor one = lowering_.graph().addConstant(tensor.elementType(), {1, 1, 1}, pad, lowering_.debug("pad"));
    lowering_.graph().setTileMapping(one, plan_.layers.front().tiles.first);
    const auto times = [](std::size_t count) { return static_cast<unsigned>(count); };
    return poplar::concat(tensor,
                          one.broadcast(times(tensor.dim(0)), 0)
                              .broadcast(times(tensor.dim(1)), 1)
                              .broadcast(times(slots - tensor.dim(2)), 2),
                          2);
  }

  // 1 for spikes, 0 for other listed neurons: [num_steps, batch, capacity].
  Tensor values(const ListPlan& list, const Tensor& history) {
    const Tensor all = builders::addHistory(lowering_.graph(), poplar::FLOAT, plan_, list, list.capacity, "values");
    const std::string vertex = poputil::templateVertex("snnjax::ListValues", poplar::FLOAT, poplar::UNSIGNED_SHORT);
    lowering_.program().add(builders::runOnHistories(
        lowering_.graph(), plan_, list, lowering_.debug("values").getPathName(), vertex,
        {{"lists", history}, {"values", all}}, {{"stride", list.stride}, {"capacity", list.capacity}}));
    return builders::inTime(plan_, list, all, list.capacity);
  }

  Lowering& lowering_;
  const lif_network::Results<Value>& results_;
  const NetworkOnTiles& network_;
  const builders::NetworkPlan& plan_;
  std::size_t num_lif_;
};

// The record stays where it is; a backward pass in the same program finds it there.
void giveRecord(Lowering& lowering, const ForwardCall& call, const NetworkOnTiles& network) {
  const auto give = [&](const Value& result, const Tensor& tensor) {
    if (result) lowering.bind(*result, tensor.reshape(lowering.type(*result).shape));
  };
  const auto attached = std::make_shared<const NetworkOnTiles>(network);
  for (std::size_t l = 0; l < call.layers.size(); ++l) {
    const lif_network::LayerOnTiles<Value>& own = call.to.record.layers[l];
    const builders::LayerTensors& tensors = network.tensors.layers[l];
    if (!own.v) continue;
    give(own.v, afterSteps(network.plan, l, tensors.membranes));
    if (own.w) give(own.w, afterSteps(network.plan, l, tensors.second_states));
    lowering.attach(*own.v, attached);
    if (!own.lists) continue;
    const ListPlan& list = network.plan.lists[l + 1];
    give(own.lists, builders::inTime(network.plan, list, network.tensors.lists[l + 1].history, list.stride));
  }
}

void lifNetwork(Lowering& lowering, const Instruction& instruction) {
  const ForwardCall call(instruction);
  const NetworkOperands operands = networkOf(call);
  builders::NetworkOptions options = optionsOf(lowering, operands, keepsRecord(call));
  options.last_spikes = std::ranges::any_of(
      call.to.results.last, [&](const auto& state) { return state.spikes && lowering.isRead(*state.spikes); });
  options.counts =
      std::ranges::any_of(call.to.results.counts, [&](const Value& counts) { return lowering.isRead(counts.value()); });
  const NetworkOnTiles network = bringNetwork(lowering, operands, options);
  lowering.program().add(builders::addForward(lowering.graph(), network.plan, network.tensors));
  Results(lowering, call, network).run();
  giveRecord(lowering, call, network);
}

std::vector<Proposal> propose(const Plan& plan, const Instruction& instruction, const poplar::Target& target) {
  const ForwardCall call(instruction);
  const NetworkOperands operands = networkOf(call);
  return proposalsFor(operands.layers, planOf(plan, operands, keepsRecord(call), target));
}

void checkLifNetwork(const OperationCheck& op) {
  const ForwardCall call(op.instruction());
  const NetworkOperands operands = networkOf(call);
  const NetworkCheck check(op, operands);
  check.needAll(call.from);
  check.needAll(call.to);
  for (std::size_t l = 0; l < operands.options.size(); ++l) {
    check.needLists(l, call.to.record.layers[l]);
  }
}

}  // namespace

extern const Operation kLifNetwork = {checkLifNetwork, lifNetwork, propose};

}  // namespace snnjax::executor::targets
