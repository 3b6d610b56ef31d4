// The target `snnjax_lif_network_backward`.
#include <popops/Reduce.hpp>

#include "executor/targets/network_check.hpp"

namespace snnjax::executor::targets {
namespace {

using builders::LayerCotangents;
using builders::LayerPlan;

// Whether a gradient of the constants of a layer is requested.
bool learns(const LayerArrays& to) {
  for (unsigned k = 0; k < kGlifConstants; ++k) {
    if (to.constants.glif.at(k)) return true;
  }
  return false;
}

// Whether anyone reads the gradient of a first membrane or second state.
bool readsFirstStates(const Lowering& lowering, const std::vector<LayerArrays>& results) {
  const auto is_read = [&](const Value& value) { return value && lowering.isRead(*value); };
  return std::ranges::any_of(results,
                             [&](const LayerArrays& to) { return is_read(to.first.v) || is_read(to.first.w); });
}

bool wantsFirstSpikes(const std::vector<LayerArrays>& results) {
  return std::ranges::any_of(results, [](const LayerArrays& to) { return to.first.spikes.has_value(); });
}

class BackwardPass {
 public:
  BackwardPass(Lowering& lowering, const BackwardCall& call, const std::vector<LayerArrays>& results,
               const NetworkOnTiles& network)
      : lowering_(lowering),
        from_(call.from.g),
        inputs_(call.to.operands.inputs),
        results_(results),
        network_(network),
        plan_(network.plan) {
    plan_.options.inputs_gradient = inputs_.array || inputs_.values;
    plan_.options.first_states_gradient = readsFirstStates(lowering, results);
    plan_.options.first_spikes_gradient = wantsFirstSpikes(results);
    plan_.options.last_spikes_gradient =
        std::ranges::any_of(from_.last, [&](const auto& g) { return g.spikes && !isZero(lowering, *g.spikes); });
    for (std::size_t l = 0; l < results.size(); ++l) plan_.layers[l].learns_constants = learns(results[l]);
    in_place_ = inPlace(lowering, results, plan_, true);  // where gradients are then accumulated
    to_ = builders::addNetworkCotangents(lowering.graph(), plan_, in_place_);
  }

  void run() {
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) bringLayer(l);
    lowering_.program().add(builders::addBackward(lowering_.graph(), plan_, network_.tensors, to_));
    giveInputs();
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) giveWeights(l);
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) giveConstants(l);
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) giveState(l);
  }

 private:
  std::size_t batch() const { return plan_.options.batch; }
  std::size_t numRows() const { return batch() * plan_.options.num_steps; }

  void bringLayer(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    const LayerCotangents& own = to_.layers[l];
    if (layer.leaky) {
      rows(layer, *from_.last_readout, own.g_v, batch());
    } else {
      const lif_network::LayerState<Value>& last = from_.last[l];
      rows(layer, *last.v, own.g_last, batch());
      if (from_.counts[l]) {
        rows(layer, *from_.counts[l], own.g_counts, batch());
      } else {
        lowering_.graph().setInitialValue(own.g_counts, 0.0F);
      }
      if (last.w) rows(layer, *last.w, own.g_last_w, batch());
      if (last.spikes && own.g_last_spikes.valid()) {
        bring(lowering_, lowering_.get(*last.spikes)[0], own.g_last_spikes);
      }
    }
    if (l + 1 < plan_.layers.size()) return;
    const Value& g_output = layer.leaky ? from_.output : from_.spikes.back();
    if (plan_.listsOutput()) return bringLists(*g_output, own.g_output);
    const Tensor steps = builders::outputInTime(plan_, own.g_output);
    rows(layer, *g_output, steps.slice(0, numRows() * layer.tiles.columns, 1), numRows());
  }

  // Gradients of listed spikes; slots may be more than neurons.
  void bringLists(ValueId from, const Tensor& history) {
    const builders::ListPlan& list = plan_.lists.back();
    const Tensor entries = lowering_.get(from)[0].slice(0, list.capacity, 2);
    bring(lowering_, entries, builders::inTime(plan_, list, history, list.capacity));
  }

  void rows(const LayerPlan& layer, ValueId from, const Tensor& blocks, std::size_t count) {
    bringRows(lowering_, lowering_.get(from)[0], blocks, layer.tiles, count, layer.neurons);
  }

  // If it is requested.
  void give(const Value& result, const Tensor& tensor) {
    if (result) yield(lowering_, *result, tensor);
  }

  void giveInputs() {
    if (!plan_.options.inputs_gradient) return;
    const builders::ListPlan& list = plan_.lists.front();
    if (list.dense) return give(inputs_.array, builders::inTime(plan_, list, to_.g_inputs, list.capacity));
    const Tensor unsorted =
        builders::addHistory(lowering_.graph(), poplar::FLOAT, plan_, list, list.capacity, "events/gradient");
    const std::vector<builders::Field> fields = {{"lists", network_.tensors.lists.front().history},
                                                 {"slots", network_.event_slots},
                                                 {"g", to_.g_inputs},
                                                 {"out", unsorted}};
    lowering_.program().add(builders::runOnHistories(lowering_.graph(), plan_, list,
                                                     lowering_.debug("events").getPathName(), "snnjax::UnsortEvents",
                                                     fields, {{"stride", list.stride}, {"capacity", list.capacity}}));
    give(inputs_.values, builders::inTime(plan_, list, unsorted, list.capacity));
  }

  // As far as they are not in place already.
  void giveWeights(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    const auto give_rows = [&](const Value& result, const Tensor& in_place, const Tensor& gradient, std::size_t rows) {
      if (!result) return;
      if (!in_place.valid()) return give(result, asRows(gradient, layer.tiles, rows, layer.neurons));
      if (const auto last = lastBlock(layer, in_place, gradient, rows)) bring(lowering_, last->own, last->in_place);
    };
    give_rows(results_[l].weights(), in_place_[l].weights, to_.layers[l].g_weights, layer.inputs);
    give_rows(results_[l].recurrent(), in_place_[l].recurrent, to_.layers[l].g_recurrent, layer.neurons);
  }

  void giveConstants(std::size_t l) {
    const LayerCotangents& own = to_.layers[l];
    const GLIFConstants<Value>& to = results_[l].constants.glif;
    giveOverBatch(results_[l].linear.bias, l, own.g_bias);
    giveOverBatch(to.decay, l, own.g_decay);
    giveOverBatch(to.threshold, l, own.g_threshold);
    giveOverBatch(to.gain, l, own.g_gain);
    const std::size_t row = batch() * plan_.layers[l].tiles.columns;
    for (unsigned k = 0; k < kSecondConstants; ++k) {
      const Value& result = to.at(WDecay + k);
      if (result) giveOverBatch(result, l, own.g_second.slice(k * row, (k + 1) * row, 1));
    }
  }

  void giveState(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    const LayerCotangents& own = to_.layers[l];
    const lif_network::LayerState<Value>& to = results_[l].first;
    const auto give_states = [&](const Value& result, const Tensor& states) {
      if (result) give(result, asRows(states, layer.tiles, batch(), layer.neurons));
    };
    give_states(to.v, layer.leaky ? own.g_v : own.g_first);
    give_states(to.w, own.g_first_w);
    give(to.spikes, own.g_first_spikes);
  }

  // [tiles, batch * columns] summed over the batch, [neurons], if it is requested.
  void giveOverBatch(const Value& result, std::size_t l, const Tensor& blocks) {
    if (!result) return;
    const LayerPlan& layer = plan_.layers[l];
    const Tensor sum =
        popops::reduce(lowering_.graph(), asRows(blocks, layer.tiles, batch(), layer.neurons), poplar::FLOAT, {0},
                       popops::Operation::ADD, lowering_.program(), lowering_.debug("over_batch"));
    give(result, sum);
  }

  Lowering& lowering_;
  const lif_network::Cotangents<Value>& from_;
  const schema::Events<Value>& inputs_;  // results, like the next ones
  const std::vector<LayerArrays>& results_;
  const NetworkOnTiles& network_;
  builders::NetworkPlan plan_;
  std::vector<builders::LayerWeights> in_place_;  // gradients computed in place
  builders::NetworkCotangents to_;
};

// Whether a forward pass kept the second states that gradients of constants need, the first spikes for theirs, and the
// slots of events for that of their values: of constant ones it does not.
bool keepsEnough(const NetworkOnTiles& network, const BackwardCall& call, const std::vector<LayerArrays>& results) {
  if (call.to.operands.inputs.values && !network.event_slots.valid()) return false;
  for (std::size_t l = 0; l < results.size(); ++l) {
    const bool reads_second = learns(results[l]) && network.plan.layers[l].neuron.second_state;
    if (reads_second && !network.plan.keepsSecond(l)) return false;
  }
  return network.plan.options.first_spikes || !wantsFirstSpikes(results);
}

// From the record alone, where its network is out of reach or kept too little.
NetworkOnTiles restored(Lowering& lowering, const NetworkOperands& operands, const BackwardCall& call,
                        const std::vector<LayerArrays>& results) {
  builders::NetworkOptions options = optionsOf(lowering, operands, true);
  options.first_spikes = options.first_spikes || wantsFirstSpikes(results);
  if (call.to.operands.inputs.values) options.inputs = builders::Inputs::Events;
  return bringNetwork(lowering, operands, options, &call);
}

void lifNetworkBackward(Lowering& lowering, const Instruction& instruction) {
  const BackwardCall call(instruction);
  const NetworkOperands operands = networkOf(call);
  const std::vector<LayerArrays> results = layersOf(call.to.operands, operands.hasReadout());
  const Value& v = call.from.record.layers.front().v;
  const auto* const found = dynamic_cast<const NetworkOnTiles*>(lowering.recordOf(v.value()));
  const bool is_enough = found != nullptr && keepsEnough(*found, call, results);
  NetworkOnTiles network = is_enough ? *found : restored(lowering, operands, call, results);
  if (is_enough) readWeightsOf(lowering, operands, network);
  network.tensors.has_copies = is_enough;
  BackwardPass(lowering, call, results, network).run();
}

std::vector<Proposal> propose(const Plan& plan, const Instruction& instruction, const poplar::Target& target) {
  const BackwardCall call(instruction);
  const NetworkOperands operands = networkOf(call);
  const builders::NetworkPlan network = planOf(plan, operands, true, target);
  std::vector<Proposal> proposals = proposalsFor(operands.layers, network);
  const auto of_results = proposalsFor(layersOf(call.to.operands, operands.hasReadout()), network);
  proposals.insert(proposals.end(), of_results.begin(), of_results.end());
  return proposals;
}

void checkLifNetworkBackward(const OperationCheck& op) {
  const BackwardCall call(op.instruction());
  const NetworkOperands operands = networkOf(call);
  const std::vector<LayerArrays> results = layersOf(call.to.operands, operands.hasReadout());
  const auto is_given = [](const Value& value) { return value.has_value(); };
  const std::vector<Value>& g_spikes = call.from.g.spikes;
  op.need(operands.hasReadout() || is_given(g_spikes.back()), "have an output");
  op.need(std::ranges::count_if(g_spikes, is_given) == (operands.hasReadout() ? 0 : 1), "record no spikes");
  op.need(std::ranges::none_of(call.to.g_v, is_given), "overwrite no record");
  const NetworkCheck check(op, operands);
  check.needAll(call.from);
  for (std::size_t l = 0; l < operands.options.size(); ++l) {
    const lif_network::LayerOnTiles<Value>& record = call.from.record.layers[l];
    const bool needs_second = learns(results[l]) && operands.options[l].neuron.second_state;
    check.needLists(l, record);
    op.need(!needs_second || record.w, "record second states for its constants");
  }
  check.needCotangents(call);
}

}  // namespace

extern const Operation kLifNetworkBackward = {checkLifNetworkBackward, lifNetworkBackward, propose};

}  // namespace snnjax::executor::targets
